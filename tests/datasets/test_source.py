"""Files are found, fetched once, checked, and missed with words that help; the public server is one on this machine."""

import gzip
import hashlib
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gibbsite.datasets.source import DatasetError, Source

CONTENT = b"some rows of data"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """(given, cache, public): $GIBBSITE_DATA, the cache's folder of the package, and what the server serves."""
    given, cache, public = (tmp_path / name for name in ("given", "cache", "public"))
    for place in (given, cache, public):
        place.mkdir()
    monkeypatch.setenv("GIBBSITE_DATA", str(given))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return given, cache / "gibbsite", public


@pytest.fixture
def server(places):
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=places[2])

        def log_message(self, format, *arguments):
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}", asked
        serving.shutdown()
        thread.join()


def source(url="http://127.0.0.1:9", content=CONTENT):
    forms = {"rows.gz": gzip.decompress, "rows": bytes}
    return Source("small", f"{url}/rows.gz", hashlib.sha256(content).hexdigest(), forms)


def put(folder, name, raw):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(raw)
    return folder / name


def test_it_is_fetched_once_and_then_kept(places, server):
    _, cache, public = places
    url, asked = server
    put(public, "rows.gz", gzip.compress(CONTENT))
    assert source(url).read() == CONTENT and source(url).read() == CONTENT
    assert len(asked) == 1
    assert [path.name for path in (cache / "small").iterdir()] == ["rows.gz"]


def test_what_is_given_comes_first_in_any_form(places, server):
    given, cache, _ = places
    put(given / "small", "rows", CONTENT)
    put(cache / "small", "rows.gz", b"never read")
    assert source(server[0]).read() == CONTENT and not server[1]


@pytest.mark.parametrize(("raw", "words"), [(gzip.compress(b"other"), "expected content with SHA-256"),
                                            (gzip.compress(CONTENT)[:20], "cannot be read"),
                                            (b"plain", "cannot be read")], ids=["other", "cut short", "plain"])  # fmt: skip
def test_a_file_that_is_not_the_right_one_is_refused(places, server, raw, words):
    given, cache, public = places
    put(public, "rows.gz", raw)
    with pytest.raises(DatasetError, match=words) as fetched:
        source(server[0]).read()
    assert "put a good copy into" in str(fetched.value) and not list(cache.rglob("*"))
    path = put(given / "small", "rows.gz", raw)
    with pytest.raises(DatasetError, match=words) as found:
        source(server[0]).read()
    assert str(path) in str(found.value) and "remove it" in str(found.value)


def test_offline_it_says_what_where_and_what_to_do(places):
    given, cache, _ = places
    with pytest.raises(DatasetError) as error:
        source().read()
    for words in ("rows.gz: not found", str(given / "small"), str(cache / "small"), "http://127.0.0.1:9", "GIBBSITE_DATA"):
        assert words in str(error.value)


def test_a_missing_public_file_says_so_too(places, server):
    with pytest.raises(DatasetError, match="404"):
        source(server[0]).read()
