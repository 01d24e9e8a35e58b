"""What may be read: paths as written, and where they really lead on the target."""

import os
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.research.common import ResearchError
from agent.research.sources import Sources, is_secret_path, parse_path

from .conftest import Bench

ROOTS = {"sglang": "~/sglang", "flashinfer": "/opt/flashinfer"}


@pytest.mark.parametrize(
    "path",
    [
        "server_args.py",
        "other:server_args.py",
        "/etc/passwd",
        "sglang:/etc/passwd",
        "sglang:../x",
        "sglang:srt/../../x",
        "sglang:..",
        "sglang:~/x",
        "sglang:~root/x",
        "~/.ssh/id_rsa",
        "sglang:.ssh/id_rsa",
        "sglang:a/.SSH/b",
        "sglang:.env",
        "sglang:.env.local",
        "sglang:a/.netrc",
        "sglang:hf_token.txt",
        "sglang:credentials.json",
        "sglang:a/server.key",
        "sglang:.git/config",
        "sglang:a\0b",
        "sglang:a\nb",
        "sglang:\ud800",
        "",
    ],
)
def test_refused_as_written(path: str) -> None:
    with pytest.raises(ResearchError):
        parse_path(path, ROOTS)


@pytest.mark.parametrize(
    "relative", ["", "srt/server_args.py", "srt/layers/moe/token_dispatcher", "a/token_dispatcher.py", "tokenizer.json"]
)
def test_accepted_as_written(relative: str) -> None:
    assert parse_path(f"sglang:{relative}", ROOTS) == ("sglang", relative)


@given(st.text())
def test_no_path_raises_anything_else(path: str) -> None:
    for text in (path, f"sglang:{path}"):
        try:
            name, relative = parse_path(text, ROOTS)
        except ResearchError:
            continue
        assert name in ROOTS
        assert ".." not in relative.split("/")
        assert not relative.startswith("/")


def test_names_of_data_files_that_speak_of_secrets() -> None:
    assert is_secret_path("a/hf_token", is_folder=False)
    assert not is_secret_path("a/token_dispatcher", is_folder=True)
    assert not is_secret_path("a/password_check.py", is_folder=False)


async def test_places_and_missing_paths(bench: Bench) -> None:
    located = await bench.sources.locate(["sglang:srt/server_args.py", "sglang:srt/arg_groups", "sglang:"])
    assert [(place.label, place.is_folder) for place in located.places] == [
        ("sglang:srt/server_args.py", False),
        ("sglang:", True),
    ]
    assert located.missing == ("sglang:srt/arg_groups",)


async def test_links_that_lead_out_are_refused(bench: Bench) -> None:
    (bench.home / "secret.py").write_text("x")
    (bench.tree / "out.py").symlink_to(bench.home / "secret.py")
    (bench.tree / "keys").symlink_to(bench.home / ".ssh")
    (bench.tree / "proc").symlink_to("/proc/self/environ")
    (bench.tree / "gone").symlink_to("/nowhere/at/all")
    for path in ("sglang:out.py", "sglang:keys", "sglang:keys/x", "sglang:proc", "sglang:gone"):
        with pytest.raises(ResearchError, match="leads out"):
            await bench.sources.locate([path])


async def test_links_inside_lead_to_the_real_file(bench: Bench, write: Callable[[str, str], str]) -> None:
    (bench.tree / "alias.py").symlink_to("srt/server_args.py")
    write("hf_token", "x")
    (bench.tree / "alias2.py").symlink_to("hf_token")
    assert (await bench.sources.locate_file("sglang:alias.py")).label == "sglang:srt/server_args.py"
    for path in ("sglang:alias2.py", "sglang:hf_token"):
        with pytest.raises(ResearchError, match="secrets"):
            await bench.sources.locate([path])


async def test_a_link_as_the_root_itself_is_fine_but_a_secret_folder_is_not(bench: Bench) -> None:
    (bench.home / "link").symlink_to(bench.tree)
    linked = Sources(bench.target, {"s": "~/link"}, str)
    assert (await linked.locate_file("s:srt/server_args.py")).label == "s:srt/server_args.py"
    keys = Sources(bench.target, {"s": "~/.ssh"}, str)
    with pytest.raises(ResearchError, match="secrets"):
        await keys.locate(["s:known_hosts"])


async def test_only_files_and_folders(bench: Bench) -> None:
    os.mkfifo(bench.tree / "pipe.py")
    with pytest.raises(ResearchError, match="neither"):
        await bench.sources.locate(["sglang:pipe.py"])
    with pytest.raises(ResearchError, match="is a folder"):
        await bench.sources.locate_file("sglang:srt")
    with pytest.raises(ResearchError, match="does not exist"):
        await bench.sources.locate_file("sglang:nothing.py")
