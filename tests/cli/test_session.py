"""Sessions with a node that has no log."""

from chronolet_schemas.envelope import START
from tests.cli.support.written_node import SHORT, WrittenNode


def test_a_read_of_a_node_without_a_log_is_one_error_line() -> None:
    node = WrittenNode()
    node.server.log, node.server.last = [], START
    result = node.run("get", "pods")
    assert result.status == 1
    assert result.errors.startswith("error: node node-1 has no log at unix:///none: start its agent")


def test_a_change_of_a_node_without_a_log_is_an_error_after_a_wait() -> None:
    node = WrittenNode(timing=SHORT)
    node.server.log, node.server.last = [], START
    result = node.run("delete", "pod/web")
    assert result.status == 1
    assert result.errors.startswith("error: node node-1 has no log at unix:///none: start its agent")
