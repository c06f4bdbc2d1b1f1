"""Run by the harness's interpreter: what its tasks ask, without a model. Arguments: the folder of task files, and a task.

Prints one JSON object: all requests in order, and of every item the harness's own hashes of prompt and target.
"""

import json
import sys

from lm_eval.tasks import TaskManager
from lm_eval.utils import hash_string


def main(folder, name):
    task = TaskManager(include_path=folder, include_defaults=False).load_task_or_group([name])[name]
    task.build_all_requests()
    by_item = {}
    for request in task.instances:
        by_item.setdefault(request.doc_id, []).append(request)
    requests, hashes = [], []
    for at, doc in task.doc_iterator():
        asked = sorted(by_item[at], key=lambda request: request.idx)
        requests += [request.arguments[:2] for request in asked]
        hashes.append(hash_string(asked[0].arguments[0]) + hash_string(str(task.doc_to_target(doc))))
    json.dump({"requests": requests, "hashes": hashes}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
