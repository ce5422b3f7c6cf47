"""ClusterSpec: the tasks of each job, and their network addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorboard.compat.proto import cluster_pb2


class ClusterSpec:
    """The processes that take part in a distributed program: jobs by name, each with tasks by index."""

    def __init__(self, cluster: Any) -> None:
        """cluster: job name -> list of addresses, or -> {task index: address}; a ClusterDef; a ClusterSpec.

        TypeError for anything else.
        """
        jobs: Mapping[Any, Any]
        if isinstance(cluster, ClusterSpec):
            jobs = cluster._jobs
        elif isinstance(cluster, cluster_pb2.ClusterDef):
            jobs = {job.name: dict(job.tasks) for job in cluster.job}
        elif isinstance(cluster, dict):
            jobs = cluster
        else:
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, "
                f"or a `ClusterDef` protocol buffer, but is {cluster!r}"
            )
        self._jobs: dict[str, dict[int, str]] = {_job_name(name): _tasks(name, jobs[name]) for name in jobs}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(tuple(sorted((job, tuple(sorted(tasks.items()))) for job, tasks in self._jobs.items())))

    def __repr__(self) -> str:
        jobs = self.as_dict()
        return "ClusterSpec({" + ", ".join(f"{job!r}: {jobs[job]!r}" for job in sorted(jobs)) + "})"

    def as_dict(self) -> dict[str, Any]:
        """Job name -> list of addresses; -> {task index: address} where indices are left out."""
        return {
            job: [tasks[i] for i in range(len(tasks))] if _is_dense(tasks) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> Any:
        """The same as a ClusterDef."""
        message = cluster_pb2.ClusterDef()
        for job in sorted(self._jobs):
            added = message.job.add(name=job)
            for index, address in sorted(self._jobs[job].items()):
                added.tasks[index] = address
        return message

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has. ValueError where there is no such job."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The indices of a job's tasks, in order. ValueError where there is no such job."""
        return sorted(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task. ValueError where there is no such job or task."""
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(
                f"No task with index {task_index!r} in job {job_name!r}, which has {sorted(tasks)}"
            )
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """A job's addresses by task index, None for indices that are left out. ValueError as num_tasks."""
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def _job(self, name: str) -> dict[int, str]:
        found = self._jobs.get(name)
        if found is None:
            jobs = ", ".join(self._jobs) or "none"
            raise ValueError(f"No such job in cluster: {name!r}; the jobs are {jobs}")
        return found


def _is_dense(tasks: Mapping[int, str]) -> bool:
    return bool(tasks) and max(tasks) + 1 == len(tasks)


def _job_name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"The name of a job must be a string, but is {name!r}")
    return name


def _tasks(job: str, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, list | tuple):
        tasks = dict(enumerate(tasks))
    elif not isinstance(tasks, dict):
        raise TypeError(
            f"The tasks for job {job!r} must be a list or a dictionary from integers to strings, "
            f"but are {tasks!r}"
        )
    for index, address in tasks.items():
        if not isinstance(address, str):
            raise TypeError(f"Task address {address!r} of task {index} in job {job!r} must be a string")
    return {int(index): address for index, address in tasks.items()}
