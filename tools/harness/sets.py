"""The harness's own task files over our items: each new file includes one of the harness's and replaces its dataset alone."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Task:
    name: str
    base: str  # the harness's file, under lm_eval/tasks
    items: str  # ours, in the directory of `./lattice eval tasks --tasks-dir`
    split: str  # the one the harness evaluates on

    @property
    def local(self) -> str:
        """Its name beside the harness's own."""
        return f"{self.name}_local"


TASKS = {task.name: task for task in (
    Task("piqa", "piqa/piqa.yaml", "piqa_val.jsonl", "validation"),
    Task("hellaswag", "hellaswag/hellaswag.yaml", "hellaswag_val.jsonl", "validation"),
    Task("winogrande", "winogrande/default.yaml", "winogrande_xl_dev.jsonl", "validation"),
    Task("arc_easy", "arc/arc_easy.yaml", "arc_easy_test.jsonl", "test"),
    Task("arc_challenge", "arc/arc_challenge.yaml", "arc_challenge_test.jsonl", "test"),
    Task("commonsense_qa", "commonsense_qa/default.yaml", "commonsense_qa_dev.jsonl", "validation"),
    Task("boolq", "super_glue/boolq/default.yaml", "boolq_dev.jsonl", "validation"),
    Task("lambada_openai", "lambada/lambada_openai.yaml", "lambada_openai_test.jsonl", "test"),
)}


def _in_their_fields(task: Task, item: dict) -> dict:
    """BoolQ's gold answer is called `label` in the harness's copy of the set, and is 0 or 1."""
    if task.name == "boolq" and "label" not in item:
        return {**item, "label": int(item["answer"])}
    return item


def write(folder: Path, tasks_dir: Path, harness: Path, names: list[str]) -> None:
    """The task files and their datasets. `harness` is the directory lm_eval/tasks."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        task = TASKS[name]
        items = [json.loads(line) for line in (tasks_dir / task.items).read_text().splitlines() if line.strip()]
        data = folder / task.items
        data.write_text("".join(json.dumps(_in_their_fields(task, item), ensure_ascii=False) + "\n" for item in items))
        others = {f"{split}_split": None for split in ("training", "validation", "test") if split != task.split}
        fields = {"include": str(harness / task.base), "task": task.local, "tag": None, "dataset_path": "json", "dataset_name": None,
                  "dataset_kwargs": {"data_files": {task.split: str(data)}}, f"{task.split}_split": task.split, **others}
        (folder / f"{task.local}.yaml").write_text(json.dumps(fields, indent=1))  # YAML's superset of JSON
