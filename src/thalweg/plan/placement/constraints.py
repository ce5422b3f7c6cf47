"""Where each node may go: kernels, what the program asks for, colocation, and where state is already.

Errors are TensorFlow's InvalidArgumentError. With soft placement a wish that can't be met gives way as in
TensorFlow: the task stays, the type and number of the device don't.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from thalweg.base import device_name
from thalweg.base.errors import InvalidArgumentError, some
from thalweg.graph.operation import Operation
from thalweg.kernel.body import StateKey
from thalweg.plan.placement.cluster import ClusterDescription
from thalweg.plan.placement.colocation import Groups, unite_all, unite_where_possible
from thalweg.plan.placement.feasible import kernel_key, kernel_on, kernel_types
from thalweg.plan.state import VARIABLE_OPS, variable_key

#: of a chain of nodes that are tied, how many an error shows
_TIES = 12


class Constraints:
    """What holds for a list of nodes. fallbacks: for each root node whose wish gave way, what happened.

    lenient: a group that can go nowhere may go anywhere, rather than raise. kernels: whether they count.
    """

    def __init__(
        self,
        ops: Sequence[Operation],
        cluster: ClusterDescription,
        soft: bool,
        homes: Mapping[StateKey, str],
        lenient: bool = False,
        kernels: bool = True,
    ) -> None:
        self.ops, self.cluster, self.soft, self.lenient = ops, cluster, soft, lenient
        self.everywhere = (1 << len(cluster)) - 1
        self.fallbacks: dict[int, str] = {}
        #: nodes at which state is already, and there alone
        self.at_home: set[int] = set()
        self._wanted: dict[str, int] = {}
        self._kernels: dict[Any, int] = {}
        self._kinds: list[int] = []
        self._by_kind = self._representatives()
        #: of each node alone: the devices with a kernel for it; those that it asks for
        self.can = [self._kernel_mask(op) for op in ops] if kernels else [self.everywhere] * len(ops)
        self.asked = [self._wish(op) for op in ops]
        want = list(self.asked)
        for i in range(len(ops)):
            if not self.can[i] & want[i] and (soft or lenient):
                want[i] = self._give_way(i)
        self.groups = Groups(ops, self.can, want, self.everywhere)
        unite_all(self.groups)
        for i, source in self.groups.overruled.items():
            self.fallbacks[i] = (
                f"'{ops[i]._name}' ({ops[i].type}) asks for '{ops[i]._device}', but goes where "
                f"'{ops[source]._name}' is, which it uses"
            )
        self._settle(homes)
        unite_where_possible(self.groups, self.asked)

    def _representatives(self) -> list[tuple[int, int]]:
        """For each kind of device, as far as kernels go: one of them, and the set of all."""
        found: dict[Any, tuple[int, int]] = {}
        for i, device in enumerate(self.cluster.devices):
            key = (device.type, device.compiles, device.hosts)
            first, mask = found.get(key, (i, 0))
            found[key] = (first, mask | 1 << i)
        return list(found.values())

    def _kernel_mask(self, op: Operation) -> int:
        if op._record.kernel is None and not op._record.device_kernels:
            return self.everywhere  # running it will tell
        key = kernel_key(op)
        mask = self._kernels.get(key) if key is not None else None
        if mask is None:
            mask = 0
            for first, devices in self._by_kind:
                if kernel_on(op, self.cluster.devices[first]) is not None:
                    mask |= devices
            if key is not None:
                self._kernels[key] = mask
        return mask

    def matching(self, wish: str) -> int:
        """The devices that a (partial) name stands for."""
        mask = self._wanted.get(wish)
        if mask is None:
            mask = self.everywhere
            if wish:
                mask = sum(
                    1 << i for i, n in enumerate(self.cluster.names) if device_name.is_compatible(wish, n)
                )
            self._wanted[wish] = mask
        return mask

    def _wish(self, op: Operation) -> int:
        return self.matching(op._device) if op._device else self.everywhere

    def _task(self, op: Operation) -> int:
        """The devices of the tasks that a node asks for."""
        if not op._device:
            return self.everywhere
        job, replica, task, _, _ = device_name.parse(op._device)
        return self.matching(str(device_name.DeviceName(job, replica, task)))

    def _give_way(self, i: int) -> int:
        """Where a node asks to be whose own wish can't be met, and gives way."""
        op, can = self.ops[i], self.can[i]
        if self.lenient:
            self.can[i] = can or self.everywhere
            return self.everywhere
        near = self._task(op)
        if not can & near:
            raise self._refusal(i)
        why = (
            f"{op.type} has no kernel there (kernels: {kernel_types(op)})" if self.asked[i]
            else f"there is no such device ({self._devices()})"
        )  # fmt: skip
        self.fallbacks[i] = f"'{op._name}' ({op.type}) asks for '{op._device}', but {why}"
        return near

    def _refusal(self, i: int) -> InvalidArgumentError:
        """The error for a node that can't be where it asks to be."""
        op, can, asked = self.ops[i], self.can[i], self.asked[i]
        near = can & self._task(op)
        start = f"Cannot assign a device for operation {op._name}: "
        if not can:
            text = (
                f"no device has a kernel for {_signature(op)}. Registered kernels: {kernel_types(op)}. The "
                f"devices are [ {self._devices()} ]. Register a kernel for one of them, or add a CPU device."
            )
        elif not asked:
            text = (
                f"it was explicitly assigned to {op._device} but available devices are "
                f"[ {self._devices()} ]. Make sure the device specification refers to a valid device"
                + self._hint(bool(near))
            )
        else:
            text = (
                f"Could not satisfy explicit device specification '{op._device}' because no supported kernel "
                f"for {self._types(asked)} devices is available for {_signature(op)}. Registered kernels: "
                f"{kernel_types(op)}. It can go to {self._names(can)}" + self._hint(bool(near))
            )
        return InvalidArgumentError(None, op, start + text)

    def _hint(self, would_help: bool) -> str:
        return ", or set ConfigProto.allow_soft_placement." if would_help and not self.soft else "."

    def _settle(self, homes: Mapping[StateKey, str]) -> None:
        """Groups that ask for what can't be give way or are an error; state stays where it is."""
        groups = self.groups
        for root, members in groups.members().items():
            if not groups.can[root] & groups.want[root]:
                self._resolve(root, members)
            for i in members if homes else ():
                home = self.cluster.index.get(homes.get(state_key(self.ops[i]), ""))  # type: ignore[arg-type]
                if home is not None and groups.can[root] >> home & 1:
                    groups.want[root] = 1 << home
                    self.at_home.add(i)
                    break

    def _resolve(self, root: int, members: list[int]) -> None:
        """A group whose members can't be together as they ask."""
        groups = self.groups
        can = groups.can[root]
        if self.lenient:
            groups.can[root] = can or self.everywhere
            groups.want[root] = self.everywhere
            return
        near = self.everywhere
        for i in members:
            near &= self._task(self.ops[i])
        if self.soft and can & near:
            self.fallbacks[root] = self._dragged(root, members)
            groups.want[root] = near
            return
        pair = _different_wishes(self.ops, members)
        if pair is not None:
            asks = [f"{self._say(i)} asks for '{self.ops[i]._device}'" for i in pair]
            raise self._apart(*pair, f"they ask for incompatible devices: {'; '.join(asks)}")
        unmet = next((i for i in members if not self.can[i] & self.asked[i]), None)
        if unmet is not None:
            raise self._refusal(unmet)
        if not can:
            a, b = _clash(members, self.can, self.everywhere)
            kernels = [f"{self._say(i)} has kernels for: {kernel_types(self.ops[i])}" for i in (a, b)]
            raise self._apart(a, b, f"no device has kernels for both: {'; '.join(kernels)}")
        raise self._lacking(root, members)

    def _lacking(self, root: int, members: list[int]) -> InvalidArgumentError:
        """The error for a group one member of which asks for a device on which another has no kernel."""
        asking = next(i for i in members if self.asked[i] != self.everywhere)
        lacking = next((i for i in members if not self.can[i] & self.groups.want[root]), members[0])
        text = (
            f"Cannot assign a device for operation {self.ops[asking]._name}: Could not satisfy explicit "
            f"device specification '{self.ops[asking]._device}' because {self._say(lacking)} of its "
            f"colocation group has no supported kernel for {self._types(self.asked[asking])} devices. "
            f"Registered kernels: {kernel_types(self.ops[lacking])}.{self._chain(asking, lacking)} The group "
            f"can go to {self._names(self.groups.can[root])}" + self._hint(True)
        )
        return InvalidArgumentError(None, self.ops[asking], text)

    def _dragged(self, root: int, members: list[int]) -> str:
        """What is to be said of a colocation group that doesn't get what it asks for."""
        groups = self.groups
        asking = next(i for i in members if self.asked[i] != self.everywhere)
        what = f"'{self.ops[asking]._name}' asks for '{self.ops[asking]._device}'"
        if not groups.want[root]:
            apart = (i for i in members if self.asked[i] and not self.asked[i] & self.asked[asking])
            other = next(apart, asking)
            return f"{what}, and {self._say(other)} of its colocation group for '{self.ops[other]._device}'"
        wanted = groups.want[root]
        lacking = next((i for i in members if not self.can[i] & wanted), members[0])
        return (
            f"{what}, but {self._say(lacking)} has no kernel there and drags its colocation group of "
            f"{len(members)} nodes along"
        )

    def _apart(self, a: int, b: int, what: str) -> InvalidArgumentError:
        """The error for a group in which two nodes have nothing in common."""
        first, second = self.ops[a], self.ops[b]
        text = (
            f"Cannot colocate nodes {first._name} and {second._name}: {what}.{self._chain(a, b)} The devices "
            f"are [ {self._devices()} ]. Ask for one device for both, or remove what ties them"
            + self._hint(True)
        )
        return InvalidArgumentError(None, second, text)

    def _chain(self, a: int, b: int) -> str:
        way = self.groups.chain(a, b)
        if not way:
            return ""
        at, steps = a, []
        for node, why in way:
            steps.append(f"'{self.ops[at]._name}' - '{self.ops[node]._name}' ({why})")
            at = node
        if len(steps) > _TIES:
            half = _TIES // 2
            steps[half:-half] = [f"{len(steps) - 2 * half} more"]
        return " What ties them: " + ", ".join(steps) + "."

    def _say(self, i: int) -> str:
        return f"'{self.ops[i]._name}' ({self.ops[i].type})"

    def _types(self, mask: int) -> str:
        return ", ".join(dict.fromkeys(d.type for i, d in enumerate(self.cluster.devices) if mask >> i & 1))

    def _names(self, mask: int) -> str:
        return some([d.name for i, d in enumerate(self.cluster.devices) if mask >> i & 1])

    def _devices(self) -> str:
        return some(self.cluster.names)


def state_key(op: Operation) -> StateKey | None:
    """By what the state that a node stands for is known in later steps; None where it has none."""
    if op.type in VARIABLE_OPS:
        return variable_key(op)
    record = op._record
    if record.kernel is not None and record.kernel.own_state is not None:
        return ("node", "", op._name)
    if record.definition.is_stateful and any(
        t._dtype.is_ref_dtype or t._dtype.name == "resource" for t in op._outputs
    ):
        shared = op._attrs.get("shared_name", b"").decode() or op._name
        return ("resource", op._attrs.get("container", b"").decode(), shared)
    return None


def _different_wishes(ops: Sequence[Operation], members: Sequence[int]) -> tuple[int, int] | None:
    """Two nodes that ask for different values of one part of a device name, or None."""
    asked: dict[int, tuple[Any, int]] = {}
    for i in members:
        if ops[i]._device:
            for part, value in enumerate(device_name.parse(ops[i]._device)):
                if value is None:
                    continue
                known, first = asked.setdefault(part, (value, i))
                if known != value:
                    return first, i
    return None


def _clash(members: Sequence[int], masks: Any, everywhere: int) -> tuple[int, int]:
    """Two members whose sets have nothing in common; else the two that leave nothing between them."""
    limited = [i for i in members if masks[i] != everywhere]
    distinct = {masks[i]: i for i in reversed(limited)}
    for a, i in distinct.items():
        for b, j in distinct.items():
            if not a & b:
                return min(i, j), max(i, j)
    left = everywhere
    for i in limited:
        left &= masks[i]
        if not left:
            return limited[0], i
    return members[0], members[-1]


def _signature(op: Operation) -> str:
    types = {t._dtype.base_dtype.name: None for t in (*op._inputs, *op._outputs)}
    return f"{op.type} ({', '.join(types)})" if types else op.type
