"""The quantile LSTM's arithmetic: forward, backward and Adam by hand, on preallocated tensors.

Feature-major throughout: a layer's output is (units, rows), so that each gate of the LSTM is one
contiguous block. The windows of a batch overlap in all but one row, so f1 and the input half of
the LSTM run once per row, not once per row and window; f1, the LSTM and f3 do not see the quantile
level, so they run once for all levels. No gradient tape: the few formulas of the backward pass are
written out, which spares the copies that automatic differentiation keeps.
"""

from itertools import accumulate, pairwise
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu_, linear

if TYPE_CHECKING:
    from setpoint_paper.models.lstm import LSTMSettings

_SLOPE = 0.2  # of the leaky ReLU below zero: the authors' choice, which the paper does not tell
_UNITS = 32  # hidden neurons of f4
_FIRST_DECAY, _SECOND_DECAY, _EPSILON = 0.9, 0.999, 1e-8  # Adam's own defaults
_ALIGNED = 16  # parameters begin at multiples of this many numbers, for the sake of BLAS

_Layer = tuple[Tensor, Tensor, Tensor, Tensor]  # weight, bias, and where their gradients go

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input
_leaky_backward = torch.ops.aten.leaky_relu_backward.grad_input


class Network:
    """Parameters, Adam's moments and the random generator of one quantile LSTM.

    The `parameters` are views into one flat tensor, as are their gradients, so that Adam takes one
    pass whatever the number of layers. They have the names and shapes that `torch.nn` gives them.
    """

    def __init__(self, features: int, held: "LSTMSettings") -> None:
        self.features, self.hidden, self.window = features, held.hidden, held.window
        self.dropout, self.learning_rate = held.dropout, held.learning_rate
        self.dtype = torch.float64 if held.double else torch.float32
        self.generator = torch.Generator().manual_seed(held.seed)
        self.steps, hidden = 0, held.hidden
        shapes: dict[str, tuple[tuple[int, ...], float]] = {}

        def layer(name: str, inputs: int, outputs: int) -> tuple[str, str]:
            bound = 1.0 / sqrt(inputs)
            shapes[f"{name}.weight"] = (outputs, inputs), bound
            shapes[f"{name}.bias"] = (outputs,), bound
            return f"{name}.weight", f"{name}.bias"

        def stack(name: str, sizes: list[int]) -> list[tuple[str, str]]:
            return [layer(f"{name}.{i}", *pair) for i, pair in enumerate(pairwise(sizes))]

        first = stack("f1", [features + 1, *held.before, hidden])
        for name in ("ih", "hh"):
            shapes[f"f2.weight_{name}"] = (4 * hidden, hidden), 1.0 / sqrt(hidden)
        # Two biases that always meet as a sum: Adam moves that sum twice as fast as it would one.
        for name in ("ih", "hh"):
            shapes[f"f2.bias_{name}"] = (4 * hidden,), 1.0 / sqrt(hidden)
        third = stack("f3", [hidden + features, *held.after])
        stack("f4", [1 + held.after[-1], _UNITS, 1])

        places, size = {}, 0
        for name, (shape, _) in shapes.items():
            places[name] = slice(size, size + prod(shape))
            size += -(-prod(shape) // _ALIGNED) * _ALIGNED
        self.values, self.gradient, self.first, self.second, self._scratch = (
            torch.zeros(size, dtype=self.dtype) for _ in range(5)
        )
        self.parameters = {
            name: self.values[places[name]].view(shape) for name, (shape, _) in shapes.items()
        }
        for name, (_, bound) in shapes.items():
            self.parameters[name].uniform_(-bound, bound, generator=self.generator)

        # The same numbers as the feature-major passes need them: biases as columns.
        self._held, self._into = (
            {
                name: flat[places[name]].view(shape if len(shape) == 2 else (-1, 1))
                for name, (shape, _) in shapes.items()
            }
            for flat in (self.values, self.gradient)
        )
        self._f1, self._f3 = (
            [
                (self._held[weight], self._held[bias], self._into[weight], self._into[bias])
                for weight, bias in names
            ]
            for names in (first, third)
        )
        self._flat1, self._flat3 = (
            [(self.parameters[weight], self.parameters[bias]) for weight, bias in names]
            for names in (first, third)
        )
        self._spaces: _Space | None = None

    # Training

    def learn(self, rows: Tensor, levels: Tensor) -> None:
        """One Adam step on the pinball loss of a batch.

        `rows` (batch + window, features + 1) are consecutive rows of x and y, scaled; all but the
        first `window` of them are predicted. `levels` is (m, 1).
        """
        space = self._space(len(rows) - self.window, len(levels))
        # BLAS may round by alignment, and where the rows lie depends on when they were saved.
        rows = space.rows.copy_(rows)
        if self.dropout:
            space.draw(self.dropout, self.generator)
        self._forward(rows, levels, space)
        self._backward(rows, levels, space)
        self._adam()

    def _space(self, batch: int, levels: int) -> "_Space":
        space = self._spaces
        if space is None or (space.batch, space.levels) != (batch, levels):
            space = self._spaces = _Space(self, batch, levels)
        return space

    def _forward(self, rows: Tensor, levels: Tensor, space: "_Space") -> None:
        batch, hidden, held = space.batch, self.hidden, self._held
        known = rows[: batch + self.window - 1].t()
        for (weight, bias, _, _), out, mask in zip(self._f1, space.f1, space.masks1, strict=True):
            torch.addmm(bias, weight, known, out=out)
            known = _activate(out, mask)
        torch.add(held["f2.bias_ih"], held["f2.bias_hh"], out=space.bias)
        torch.addmm(space.bias, held["f2.weight_ih"], known, out=space.inputs)
        weight = held["f2.weight_hh"]
        for step in range(self.window):
            gates, cell = space.gates[step], space.cells[step]
            if step:
                torch.addmm(space.shifted[step], weight, space.outputs[step - 1], out=gates)
            else:
                gates.copy_(space.shifted[step])
            i, f, g, o = space.split[step]
            # tanh(a) = 2 σ(2a) − 1: torch's sigmoid takes a third of the time of its tanh.
            g.mul_(2.0)
            gates.sigmoid_()
            g.mul_(2.0).sub_(1.0)
            torch.mul(i, g, out=cell)
            if step:
                cell.addcmul_(f, space.cells[step - 1])
            bent = torch.mul(cell, 2.0, out=space.bent[step])
            bent.sigmoid_().mul_(2.0).sub_(1.0)
            torch.mul(o, bent, out=space.outputs[step])
        space.joined[hidden:].copy_(rows[self.window :, : self.features].t())
        known = space.joined
        for (weight, bias, _, _), out, mask in zip(self._f3, space.f3, space.masks3, strict=True):
            torch.addmm(bias, weight, known, out=out)
            known = _activate(out, mask)
        weight = held["f4.0.weight"]
        torch.addmm(held["f4.0.bias"], weight[:, 1:], known, out=space.common)
        torch.addcmul(space.common[:, None], weight[:, :1, None], levels, out=space.f4)
        _activate(space.f4, space.mask4)
        torch.addmm(
            held["f4.1.bias"], held["f4.1.weight"], space.f4.view(_UNITS, -1), out=space.quantiles
        )

    def _backward(self, rows: Tensor, levels: Tensor, space: "_Space") -> None:
        batch, hidden, held, into = space.batch, self.hidden, self._held, self._into
        count = space.levels * batch
        # The slope of the pinball loss in the quantile: 1 − τ from y upwards, else −τ.
        quantiles = space.quantiles.view(space.levels, batch)
        torch.ge(quantiles, rows[self.window :, -1], out=space.slope)
        slope = space.slope.sub_(levels).div_(count).view(1, count)

        torch.mm(slope, space.f4.view(_UNITS, count).t(), out=into["f4.1.weight"])
        torch.sum(slope, 1, keepdim=True, out=into["f4.1.bias"])
        torch.mul(held["f4.1.weight"].t(), slope, out=space.d4.view(_UNITS, count))
        _deactivate(space.d4, space.f4, space.mask4)
        torch.sum(space.d4, 1, out=space.common)
        torch.mul(space.d4, levels, out=space.f4)
        torch.sum(space.f4.view(_UNITS, count), 1, keepdim=True, out=into["f4.0.weight"][:, :1])
        torch.sum(space.common, 1, keepdim=True, out=into["f4.0.bias"])
        torch.mm(space.common, space.f3[-1].t(), out=space.last)
        into["f4.0.weight"][:, 1:].copy_(space.last)
        torch.mm(held["f4.0.weight"][:, 1:].t(), space.common, out=space.d3[-1])

        below = [space.joined, *space.f3[:-1]]
        _descend(self._f3, space.f3, below, space.d3, space.masks3, space.djoined)
        dh = space.djoined[:hidden]

        weight = held["f2.weight_hh"]
        last, dc = self.window - 1, space.dcell
        for step in reversed(range(self.window)):
            i, f, g, o = space.split[step]
            di, df, dg, do = space.dsplit
            bent = space.bent[step]
            torch.mul(dh, bent, out=do)
            torch.mul(dh, o, out=space.spare)
            _tanh_backward(space.spare, bent, grad_input=space.spare)
            if step == last:
                dc.copy_(space.spare)
            else:
                dc.add_(space.spare)
            torch.mul(dc, g, out=di)
            torch.mul(dc, i, out=dg)
            _sigmoid_backward(di, i, grad_input=di)
            _tanh_backward(dg, g, grad_input=dg)
            _sigmoid_backward(do, o, grad_input=do)
            if step:
                torch.mul(dc, space.cells[step - 1], out=df)
                _sigmoid_backward(df, f, grad_input=df)
                dc.mul_(f)
                add = 0.0 if step == last else 1.0
                into["f2.weight_hh"].addmm_(space.dgates, space.outputs[step - 1].t(), beta=add)
                dh = torch.mm(weight.t(), space.dgates, out=space.dhidden)
            else:
                df.zero_()
            if step == last:
                space.dinputs[:, :step].zero_()
                space.dshifted[step].copy_(space.dgates)
            else:
                space.dshifted[step].add_(space.dgates)
        torch.mm(space.dinputs, space.f1[-1].t(), out=into["f2.weight_ih"])
        torch.sum(space.dinputs, 1, keepdim=True, out=into["f2.bias_ih"])
        into["f2.bias_hh"].copy_(into["f2.bias_ih"])
        torch.mm(held["f2.weight_ih"].t(), space.dinputs, out=space.d1[-1])
        below = [rows[: batch + self.window - 1].t(), *space.f1[:-1]]
        _descend(self._f1, space.f1, below, space.d1, space.masks1, None)

    def _adam(self) -> None:
        self.steps += 1
        gradient, scratch = self.gradient, self._scratch
        self.first.lerp_(gradient, 1.0 - _FIRST_DECAY)
        self.second.mul_(_SECOND_DECAY).addcmul_(gradient, gradient, value=1.0 - _SECOND_DECAY)
        torch.sqrt(self.second, out=scratch)
        scratch.div_(sqrt(1.0 - _SECOND_DECAY**self.steps)).add_(_EPSILON)
        size = self.learning_rate / (1.0 - _FIRST_DECAY**self.steps)
        self.values.addcdiv_(self.first, scratch, value=-size)

    # Prediction

    def quantiles(self, rows: Tensor, x: Tensor, levels: Tensor) -> Tensor:
        """The quantiles (m,) of the y after `rows` (window, features + 1), at levels (m,)."""
        hidden, held = self.hidden, self.parameters
        known = rows.clone()  # aligned, as in `learn`
        for number, (weight, bias) in enumerate(self._flat1, 1):
            known = linear(known, weight, bias)
            if number < len(self._flat1):
                leaky_relu_(known, _SLOPE)
        inputs = linear(known, held["f2.weight_ih"], held["f2.bias_ih"] + held["f2.bias_hh"])
        output = cell = torch.zeros(hidden, dtype=self.dtype)
        for step in range(self.window):
            gates = torch.addmv(inputs[step], held["f2.weight_hh"], output) if step else inputs[0]
            fresh = torch.tanh(gates[2 * hidden : 3 * hidden])
            gates = torch.sigmoid(gates)
            cell = fresh.mul_(gates[:hidden]).addcmul_(gates[hidden : 2 * hidden], cell)
            output = torch.tanh(cell).mul_(gates[3 * hidden :])
        known = torch.cat((output, x))
        for number, (weight, bias) in enumerate(self._flat3, 1):
            known = torch.addmv(bias, weight, known)
            if number < len(self._flat3):
                leaky_relu_(known, _SLOPE)
        weight = held["f4.0.weight"]
        common = torch.addmv(held["f4.0.bias"], weight[:, 1:], known)
        units = leaky_relu_(torch.addcmul(common, levels[:, None], weight[:, 0]), _SLOPE)
        return torch.mv(units, held["f4.1.weight"][0]).add_(held["f4.1.bias"])

    # State

    def state(self) -> dict[str, Any]:
        """All that the next steps depend on, in numbers and numpy arrays."""
        return {
            "steps": self.steps,
            "values": self.values.numpy().copy(),
            "first": self.first.numpy().copy(),
            "second": self.second.numpy().copy(),
            "generator": self.generator.get_state().numpy().copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from a `state` of a network of the same shape."""
        self.steps = int(state["steps"])
        for name in ("values", "first", "second"):
            getattr(self, name).copy_(torch.from_numpy(np.array(state[name])))
        self.generator.set_state(torch.from_numpy(np.array(state["generator"])))


def _activate(out: Tensor, mask: Tensor | None) -> Tensor:
    """Leaky ReLU and dropout in place; no mask, no dropout; an empty one, neither."""
    if mask is None:
        return leaky_relu_(out, _SLOPE)
    if mask.numel():
        leaky_relu_(out, _SLOPE).mul_(mask)
    return out


def _deactivate(slope: Tensor, out: Tensor, mask: Tensor | None) -> None:
    """The slope before `_activate`, in place; the sign of its result tells the side it was on."""
    if mask is not None:
        if not mask.numel():
            return
        slope.mul_(mask)
    _leaky_backward(slope, out, _SLOPE, True, grad_input=slope)


def _descend(
    layers: list[_Layer],
    outs: list[Tensor],
    below: list[Tensor],
    slopes: list[Tensor],
    masks: list[Tensor | None],
    bottom: Tensor | None,
) -> None:
    """Gradients of a stack of linear layers, from the slope of its last output downwards."""
    for number in reversed(range(len(layers))):
        weight, _, into_weight, into_bias = layers[number]
        _deactivate(slopes[number], outs[number], masks[number])
        torch.mm(slopes[number], below[number].t(), out=into_weight)
        torch.sum(slopes[number], 1, keepdim=True, out=into_bias)
        target = slopes[number - 1] if number else bottom
        if target is not None:
            torch.mm(weight.t(), slopes[number], out=target)


class _Space:
    """The tensors one batch needs, kept from step to step while its size stays."""

    def __init__(self, network: Network, batch: int, levels: int) -> None:
        self.batch, self.levels = batch, levels
        hidden, steps = network.hidden, network.window
        rows = batch + steps - 1

        def room(*shape: int) -> Tensor:
            return torch.empty(shape, dtype=network.dtype)

        def like(layers: list[_Layer], columns: int) -> list[Tensor]:
            return [room(len(layer[0]), columns) for layer in layers]

        self.rows = room(batch + steps, network.features + 1)
        self.f1, self.d1 = like(network._f1, rows), like(network._f1, rows)
        self.f3, self.d3 = like(network._f3, batch), like(network._f3, batch)
        self.bias = room(4 * hidden, 1)
        self.inputs, self.dinputs = room(4 * hidden, rows), room(4 * hidden, rows)
        self.shifted, self.dshifted = (
            [each[:, step : step + batch] for step in range(steps)]
            for each in (self.inputs, self.dinputs)
        )
        self.gates = [room(4 * hidden, batch) for _ in range(steps)]
        self.dgates = room(4 * hidden, batch)
        self.split = [gates.chunk(4) for gates in self.gates]
        self.dsplit = self.dgates.chunk(4)
        self.cells = [room(hidden, batch) for _ in range(steps)]
        self.bent = [room(hidden, batch) for _ in range(steps)]
        self.dcell, self.dhidden, self.spare = (room(hidden, batch) for _ in range(3))
        # The LSTM's last output lies where f3 reads it, above x.
        self.joined, self.djoined = (room(hidden + network.features, batch) for _ in range(2))
        self.outputs = [*(room(hidden, batch) for _ in range(steps - 1)), self.joined[:hidden]]
        self.f4, self.d4 = room(_UNITS, levels, batch), room(_UNITS, levels, batch)
        self.common = room(_UNITS, batch)
        self.last = room(_UNITS, len(self.f3[-1]))
        self.quantiles = room(1, levels * batch)
        self.slope = room(levels, batch)

        none = room(0)  # the last layer of f1 and of f3 is linear
        self.masks1: list[Tensor | None] = [None] * (len(self.f1) - 1) + [none]
        self.masks3: list[Tensor | None] = [None] * (len(self.f3) - 1) + [none]
        self.mask4: Tensor | None = None
        if network.dropout:
            masked = [*self.f1[:-1], *self.f3[:-1], self.f4]
            ends = [0, *accumulate(each.numel() for each in masked)]
            self._bits = torch.empty(-(-ends[-1] // 4), dtype=torch.int64)
            self._words = self._bits.view(torch.int16)[: ends[-1]]
            self._kept = torch.empty(ends[-1], dtype=torch.bool)
            self._factors = room(ends[-1])
            shaped = [
                self._factors[first:last].view(each.shape)
                for each, (first, last) in zip(masked, pairwise(ends), strict=True)
            ]
            self.masks1 = [*shaped[: len(self.f1) - 1], none]
            self.masks3 = [*shaped[len(self.f1) - 1 : -1], none]
            self.mask4 = shaped[-1]

    def draw(self, dropout: float, generator: torch.Generator) -> None:
        """New masks: 0, or 1 / (1 − dropout). Four of them from each 64-bit draw."""
        self._bits.random_(-(2**63), None, generator=generator)
        torch.ge(self._words, round(dropout * 65536) - 32768, out=self._kept)
        torch.mul(self._kept, 1.0 / (1.0 - dropout), out=self._factors)
