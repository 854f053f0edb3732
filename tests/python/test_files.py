"""JSON files: what is read, what is refused, and that they are written whole."""
import json
import os
import subprocess
import sys
import unittest

import dsat
from dsat import _files
from support import PACKAGE, PackageTest

ADD_ONE = """
import sys
from dsat import _files
path = sys.argv[1]
for _ in range(20):
    with _files.locked(path):
        count = _files.read_json(path)["count"]
        _files.write_json(path, {"count": count + 1})
"""


class Reading(PackageTest):
    def test_comments_and_a_byte_order_mark_are_let_through(self):
        path = self.write("c.json", '\ufeff{ // one\n "a": /* two\n */ "http://x/*no*/", "b": "\\"//" }')
        self.assertEqual(_files.read_json(path), {"a": "http://x/*no*/", "b": '"//'})

    def test_what_is_refused_says_where_and_why(self):
        for text, words in (('{"a": 1, "b": {"c": 1, "c": 2}}', "key 'c' is there twice"),
                            ('{"a": NaN}', "NaN is not JSON"), ('{"a": -Infinity}', "-Infinity is not JSON"),
                            ("", "c.json"), ("[1]", "no JSON object but a list"),
                            ('{"a": 1,}', "c.json"), ('{"a": True}', "c.json"),
                            ("[" * 100000, "nested too deeply|c.json")):
            path = self.write("c.json", text)
            with self.subTest(text[:20]), self.assertRaisesRegex(dsat.Error, words) as caught:
                _files.read_json(path)
            self.assertIn("c.json", str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))

    def test_an_error_names_the_line_in_spite_of_comments(self):
        path = self.write("c.json", '{ /* one\ntwo */\n "a" 1 }')
        with self.assertRaisesRegex(dsat.Error, "line 3"):
            _files.read_json(path)

    def test_bytes_that_are_no_text(self):
        (self.dir / "c.json").write_bytes(b'{"a": "\xff"}')
        with self.assertRaisesRegex(dsat.Error, "c.json"):
            _files.read_json(str(self.dir / "c.json"))

    def test_a_folder_and_nothing(self):
        for name, words in ((".", "Is a directory"), ("none", "No such file")):
            with self.assertRaisesRegex(dsat.Error, words):
                _files.read_json(str(self.dir / name))


class Writing(PackageTest):
    def test_leaves_nothing_but_the_file(self):
        _files.write_json(str(self.dir / "a.json"), {"x": 1})
        _files.write_json(str(self.dir / "a.json"), {"x": 2})
        self.assertEqual((self.files(), self.result("a.json")), (["a.json"], {"x": 2}))

    def test_what_cannot_be_written_leaves_the_old_file(self):
        path = self.write("a.json", {"x": 1})
        for value in ({"x": float("nan")}, {"x": object()}):
            with self.assertRaisesRegex(dsat.Error, "cannot write .*a.json"):
                _files.write_json(path, value)
        self.assertEqual((self.files(), self.result("a.json")), (["a.json"], {"x": 1}))

    def test_a_folder_that_is_not_there(self):
        with self.assertRaisesRegex(dsat.Error, "cannot write .*No such file"):
            _files.write_json(str(self.dir / "none/a.json"), {})

    def test_a_target_that_cannot_be_replaced_leaves_no_temporary_file(self):
        (self.dir / "a.json").mkdir()
        with self.assertRaisesRegex(dsat.Error, "cannot write"):
            _files.write_json(str(self.dir / "a.json"), {})
        self.assertEqual(self.files(), ["a.json"])


class Locking(PackageTest):
    def test_processes_take_turns(self):
        path = self.write("count.json", {"count": 0})
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
        processes = [subprocess.Popen([sys.executable, "-S", "-c", ADD_ONE, path], env=environment) for _ in range(4)]
        self.assertEqual([process.wait(60) for process in processes], [0] * 4)
        self.assertEqual(json.loads((self.dir / "count.json").read_text()), {"count": 80})

    def test_a_folder_that_is_not_there(self):
        with self.assertRaisesRegex(dsat.Error, "cannot lock .*No such file"):
            with _files.locked(str(self.dir / "none/a.json")):
                pass


if __name__ == "__main__":
    unittest.main()
