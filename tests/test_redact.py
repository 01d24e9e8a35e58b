"""Secrets leave text, and what only looks like one stays."""

import base64
import hashlib
import json
from urllib.parse import quote

import pytest

from agent.core import events as ev
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.headless import Printer
from agent.redact import Redactor, is_secret_name, redact_line, redact_tree
from tests.core.conftest import playbook, started

KNOWN = 'p@ss"w0rd/x'
# Shapes of secrets, put together here so that no scanner takes this file for a leak.
HF = "hf_" + "aB3" * 9
GH = "ghp_" + "aB3" * 9
SK = "sk-ant-" + "aB3-" * 9


@pytest.fixture
def redact() -> Redactor:
    return Redactor.of({"HF_TOKEN": KNOWN, "PATH": "/usr/bin", "SHORT_SECRET": "abc"}, [("api-key", "letmein")])


@pytest.mark.parametrize(
    "form", [KNOWN, json.dumps(KNOWN), quote(KNOWN, safe=""), base64.b64encode(KNOWN.encode()).decode()]
)
@pytest.mark.parametrize("around", ["{}", "KeyError: '{}'", "x={}&y", "/a/{}/b", "repr({})"])
def test_a_known_secret_goes_in_each_of_its_forms(form: str, around: str, redact: Redactor) -> None:
    text = redact(around.format(form))
    assert KNOWN not in text and form not in text
    assert "‹redacted:HF_TOKEN:" in text


def test_the_mark_names_the_secret_and_tells_two_apart(redact: Redactor) -> None:
    digest = hashlib.sha256(b"letmein").hexdigest()[:8]
    assert redact("bind 127.0.0.1 letmein") == f"bind 127.0.0.1 ‹redacted:api-key:{digest}›"


SECRET = "s3cret-Value_42"


@pytest.mark.parametrize(
    "text",
    [
        f"api_key='{SECRET}', file_storage_path='x'",
        f'"admin_api_key": "{SECRET}",',
        f"api_key={SECRET}",
        f"python -m x --api-key {SECRET} --tp 8",
        f"python -m x --api-key={SECRET}",
        f"--hf-token {SECRET}",
        f"HF_TOKEN={SECRET}",
        f"export MY_CI_TOKEN={SECRET}; x",
        f"AWS_SECRET_ACCESS_KEY={SECRET}",
        f"environ({{'WANDB_API_KEY': '{SECRET}', 'HOME': '/root'}})",
        f"ssl_keyfile_password='{SECRET}'",
        f"Authorization: Bearer {SECRET}",
        f"authorization: Basic {SECRET}",
        f"curl -H 'Bearer {SECRET}'",
        f"https://user:{SECRET}@host/x.git",
        f"postgres://me:{SECRET}@host",
        f"password: {SECRET}",
        f"token={SECRET}{SECRET}",
        f"PASSWORD={SECRET}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_nobody_told_us(text: str) -> None:
    assert SECRET not in Redactor({})(text)


@pytest.mark.parametrize("secret", [HF, GH, SK, "AKIA" + "ABCD" * 4, "AIza" + "a1B2" * 9, "github_pat_" + "a1_" * 9])
def test_well_known_shapes(secret: str) -> None:
    assert Redactor({})(f"got {secret}, ok") == "got ‹redacted›, ok"


@pytest.mark.parametrize(
    "text",
    [
        "max_total_num_tokens=2117733, chunked_prefill_size=8192, max_running_requests=32",
        "tokenizer_path='/opt/m/qwen3moe', tokenizer_mode='auto', skip_tokenizer_init=False",
        "api_key=None, admin_api_key='', hf_token=null, ssl_keyfile_password=None",
        "non-default args: {'api_key': '***', 'port': 1}",
        "Decode batch, #running-req: 1, #token: 512, token usage: 0.00, gen throughput (token/s): 54.10",
        "eos_token='</s>', pad_token_id=0, unk_token=None",
        "model='deepseek-ai/DeepSeek-R1-0528', revision='3f2a9c1d8e7b6a5f4d3c2b1a0f9e8d7c6b5a4f3e'",
        "/root/.cache/torch_compile_cache/8c8dcd1451/rank_0_0/backbone",
        "[--api-key API_KEY] [--ssl-keyfile-password SSL_KEYFILE_PASSWORD] [--disable-outlines-disk-cache-for-x]",
        "Please set a HF_TOKEN to enable higher rate limits and faster downloads.",
        "PasswordAuthentication no, the secret of speed",
        "tcp://10.0.0.1:32903 backend=nccl http://127.0.0.1:30000/v1 user@host:22",
        "task-management-and-other-long-hyphenated-names",
        "KeyError: 'model.layers.0.mlp.gate.weight'",
        "--api-key",
        "API_KEY=$API_KEY",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert Redactor({})(text) == text


def test_secret_names() -> None:
    assert all(map(is_secret_name, ["api-key", "HF_TOKEN", "ssl_keyfile_password", "Authorization", "AWS_SECRET"]))
    assert not any(map(is_secret_name, ["tokenizer-path", "max-total-tokens", "token_usage", "model", "key"]))


def test_redacting_twice_changes_nothing(redact: Redactor) -> None:
    text = redact(f"api_key='letmein' HF_TOKEN={KNOWN} {HF}")
    assert redact(text) == text


def test_a_tree_is_redacted_text_by_text(redact: Redactor) -> None:
    tree = {"a": ["letmein", 1, None], "b": {"c": f"x {HF}"}}
    assert "letmein" not in str(redact_tree(redact, tree)) and HF not in str(redact_tree(redact, tree))
    assert redact_tree(redact, {"n": 1, "t": True}) == {"n": 1, "t": True}


BODY = base64.b64encode(bytes(range(48))).decode()


@pytest.mark.parametrize("line", [BODY, f"  {BODY}  ", f'+"{BODY}",', BODY[:47] + "="])
def test_a_line_of_a_private_key_goes_whole(line: str, redact: Redactor) -> None:
    assert redact(line) == line  # which is why lines that are seen one by one need more
    assert redact_line(redact, line) == "‹redacted›"


@pytest.mark.parametrize("line", [BODY[:39], "deadbeef" * 8, f"digest {BODY}", f"x = '{BODY}' + y", "A" * 64, ""])
def test_a_line_that_is_no_key_stays(line: str, redact: Redactor) -> None:
    assert redact_line(redact, line) == line


def test_the_lines_of_a_session_hold_none_of_its_playbooks_secrets() -> None:
    secret = "plain-words-of-a-token"
    base = {"id": "base", "env": {"MY_TOKEN": secret}, "research": [{"ask": f"is {secret} right?"}]}
    start = started(playbook(base))
    state, lines = initial(start), list[str]()
    printer = Printer(lines.append)
    printer(state, start, state)
    event = next_decision(state)
    assert isinstance(event, ev.TaskRequested)
    printer(state, event, reduce(state, event)[0])
    assert "is ‹redacted:MY_TOKEN" in lines[-1] and secret not in "".join(lines)
