"""Folds streams in which updates are patches, with jsonpatch.

The first argument is a stream of whole objects. Each state that is folded of one of the others is held against the same
version there. The output is a JSON object by stream: how many patches and whole objects there were, how many states were
compared, and the objects that are left.
"""
import json
import sys

import jsonpatch


def events(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            yield event["type"].removeprefix("dev.kubecdc."), event


def narrow(state):
    """What a stream of the name sees of an object."""
    return {**state, "data": {key: value for key, value in state["data"].items() if key != "pad"}}


class Fold:
    def __init__(self, path, whole):
        self.path, self.whole = path, whole
        self.held = {}  # by uid: version and object
        self.ids = set()
        self.counts = {"patches": 0, "objects": 0, "compared": 0, "gaps": 0, "trimmed": 0}

    def take(self, op, event):
        if event["id"] in self.ids and op != "gap":  # a delete that no watch saw has the version before it, in its gap, too
            self.fail(event, "it comes twice")
        self.ids.add(event["id"])
        uid = event.get("uid")
        if op == "gap" and uid is None:
            self.held.clear()
        elif op in ("gap", "deleted"):
            self.held.pop(uid, None)
        elif not op.startswith("snapshot."):
            self.state(op, event, uid)
        self.counts["gaps"] += op == "gap"

    def state(self, op, event, uid):
        if "base" in event:
            state = self.patched(op, event, uid)
        else:
            state = event["data"]
            self.counts["objects"] += 1
        if "trimmed" in event:
            self.held.pop(uid, None)
            self.counts["trimmed"] += 1
            return
        self.compare(event, uid, state)
        self.held[uid] = event["resourceversion"], state

    def patched(self, op, event, uid):
        if op != "updated" or event["datacontenttype"] != "application/json-patch+json":
            self.fail(event, "it has a base")
        version, before = self.held.get(uid, (None, None))
        if version != event["base"]:
            self.fail(event, f"its base is not {version}")
        self.counts["patches"] += 1
        return jsonpatch.apply_patch(before, event["data"])

    def compare(self, event, uid, state):
        told = self.whole.get((uid, event["resourceversion"]))
        if told is None:
            return
        if state != (narrow(told) if "narrow" in self.path else told):
            self.fail(event, f"it is folded to {state}, and was {told}")
        self.counts["compared"] += 1

    def fail(self, event, why):
        sys.exit(f"{self.path}: {why}: {json.dumps(event)[:2000]}")


def main():
    objects = ("added", "updated", "replaced", "sync")
    whole = {(event["uid"], event["resourceversion"]): event["data"] for op, event in events(sys.argv[1]) if op in objects}
    result = {}
    for path in sys.argv[2:]:
        fold = Fold(path, whole)
        for op, event in events(path):
            fold.take(op, event)
        result[path] = {**fold.counts, "held": {state["metadata"]["name"]: state for _, state in fold.held.values()}}
    print(json.dumps(result))


main()
