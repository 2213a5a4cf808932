"""Data sets: found under $GIBBSITE_DATA or in a cache, else fetched from where they are public, with a digest."""

from .digits import digits
from .frey_faces import frey_faces
from .images import Images
from .mnist import mnist
from .source import DatasetError
