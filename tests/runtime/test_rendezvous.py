"""The rendezvous: keys, and what puts, takes, cancellation and abort do in every order."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tf
from thalweg.base import errors
from thalweg.graph.operation import Operation
from thalweg.runtime.rendezvous import DEAD, Key, Rendezvous, parse_key

CPU = "/job:localhost/replica:0/task:0/device:CPU:"
KEY = str(Key(CPU + "0", 0xBEEF, CPU + "1", "edge_1_x"))


@pytest.fixture
def op() -> Operation:
    with tf.Graph().as_default():
        return tf.no_op("receiver")


def test_the_key_is_tensorflows() -> None:
    text = KEY
    assert text == f"{CPU}0;beef;{CPU}1;edge_1_x;0:0"
    assert parse_key(KEY) == (CPU + "0", 0xBEEF, CPU + "1", "edge_1_x", 0, 0)
    assert parse_key(f"{CPU}0;1;{CPU}1;x;77:5") == Key(CPU + "0", 1, CPU + "1", "x", 77, 5)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it has 1 parts"),
        (f"{CPU}0;1;{CPU}1;x", "it has 4 parts"),
        (f"{CPU}0;1;{CPU}1;x;0:0;", "it has 6 parts"),
        (f"{CPU}0;1;{CPU}1;x;00", "is not FRAME:ITERATION"),
        (f"{CPU}0;1;{CPU}1;x;0:-1", "is not FRAME:ITERATION"),
        (f"{CPU}0;1;{CPU}1;x;0:²", "is not FRAME:ITERATION"),
        (f"{CPU}0;0x1;{CPU}1;x;0:0", "hexadecimal"),
        (f"{CPU}0;;{CPU}1;x;0:0", "hexadecimal"),
        (f"{CPU}0;1;/cpu:1;x;0:0", "recv_device '/cpu:1' is not the full name"),
        (f"nowhere;1;{CPU}1;x;0:0", "send_device 'nowhere' is not the full name"),
        (f"{CPU}0;1;{CPU}1;;0:0", "can't be a tensor's name"),
    ],
)
def test_a_malformed_key_says_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Invalid rendezvous key") as caught:
        parse_key(text)
    assert why in caught.value.message


@given(st.text(max_size=80))
def test_any_text_is_a_key_or_an_error(text: str) -> None:
    try:
        assert str(parse_key(text))
    except errors.InvalidArgumentError:
        pass


def test_a_message_that_comes_first(op: Operation) -> None:
    rendezvous = Rendezvous()
    assert not rendezvous.put(KEY, "value")
    assert rendezvous.unreceived() == [KEY] and len(rendezvous) == 1
    future = rendezvous.take(KEY, op)
    assert future.done() and future.result() == "value"
    assert len(rendezvous) == 0


def test_a_message_that_is_waited_for(op: Operation) -> None:
    rendezvous = Rendezvous()
    future = rendezvous.take(KEY, op)
    told: list[Any] = []
    future.add_done_callback(told.append)
    assert not future.done() and len(rendezvous) == 1
    assert future.describe() == f"'edge_1_x' from {CPU}0"
    assert rendezvous.put(KEY, DEAD)
    assert told == [future] and future.result() is DEAD
    assert len(rendezvous) == 0


def test_iterations_are_apart(op: Operation) -> None:
    rendezvous = Rendezvous()
    keys = [str(Key(CPU + "0", 1, CPU + "1", "x", 9, i)) for i in range(3)]
    futures = [rendezvous.take(k, op) for k in keys]
    assert futures[2].describe() == f"'x' from {CPU}0, iteration 2"
    for i in (2, 0, 1):
        rendezvous.put(keys[i], i)
    assert [f.result() for f in futures] == [0, 1, 2]


def test_a_key_is_sent_once_and_received_once(op: Operation) -> None:
    rendezvous = Rendezvous()
    rendezvous.put(KEY, 1)
    with pytest.raises(errors.InternalError, match="sent twice"):
        rendezvous.put(KEY, 2)
    rendezvous.take(KEY, op)
    rendezvous.take(KEY, op)
    with pytest.raises(errors.InternalError, match="received twice"):
        rendezvous.take(KEY, op)


def test_a_cancelled_wait_leaves_nothing(op: Operation) -> None:
    rendezvous = Rendezvous()
    future = rendezvous.take(KEY, op)
    assert future.cancel()
    assert len(rendezvous) == 0
    with pytest.raises(errors.CancelledError, match="receiver"):
        future.result()
    assert not rendezvous.put(KEY, 1)
    assert rendezvous.take(KEY, op).result() == 1
    assert not future.cancel()


def test_abort_ends_all_and_keeps_nothing(op: Operation) -> None:
    rendezvous = Rendezvous()
    other = str(Key(CPU + "0", 1, CPU + "1", "other"))
    waiting = rendezvous.take(KEY, op)
    rendezvous.put(other, 1)
    rendezvous.abort(errors.DataLossError(None, None, "first"))
    rendezvous.abort(errors.CancelledError(None, None, "second"))
    assert len(rendezvous) == 0
    assert not rendezvous.put(other, 2) and len(rendezvous) == 0
    for future in (waiting, rendezvous.take(other, op)):
        assert future.done()
        with pytest.raises(errors.DataLossError, match="first"):
            future.result()


def test_many_threads_meet(op: Operation) -> None:
    rendezvous = Rendezvous()
    keys = [str(Key(CPU + "0", 1, CPU + "1", f"t{i}")) for i in range(400)]
    results: dict[str, Any] = {}

    def send() -> None:
        for key in keys:
            rendezvous.put(key, key)

    def receive() -> None:
        for key in keys:
            rendezvous.take(key, op).add_done_callback(lambda f, key=key: results.__setitem__(key, f.result()))

    threads = [threading.Thread(target=f) for f in (send, receive)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(10)
    assert results == {key: key for key in keys} and len(rendezvous) == 0
