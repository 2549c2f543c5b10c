"""Find what is near in front of a car, and miss at most a tenth of it.

A camera looks at a road. A small torch network learns, frame by frame, which pixels are nearer than
ten metres; its scores are never quite right. The risk is the paper's false negative rate: the share
of the near pixels that the shown mask leaves out. It is kept at 10 % by the self-adjusting default,
beside masks cut at a score of one half.

Run it with `python examples/near_pixels.py FILE`. It needs the extra `torch`, and a file of frames:
numpy arrays `rgb` (frames, height, width, 3) of bytes and `depth_sgm_m256`, metres times 256, 0
where nothing is known. `setpoint-paper fetch --kitti-odometry FOLDER` makes one from KITTI.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import setpoint as sp
from setpoint.models.torch import Mask, Online

NEAR = 10.0  # metres
FILE = Path("../shared/data/depth/kitti_odom00_208x64.npz")


def network() -> nn.Module:
    """Sees colours and where a pixel lies, through windows of 3, 5 and 9 pixels a side."""

    class Places(nn.Module):
        def forward(self, frames: torch.Tensor) -> torch.Tensor:
            rows = torch.linspace(-1.0, 1.0, frames.shape[2]).view(1, 1, -1, 1)
            columns = torch.linspace(-1.0, 1.0, frames.shape[3]).view(1, 1, 1, -1)
            like = (len(frames), 1, *frames.shape[2:])
            return torch.cat([frames, rows.expand(like), columns.expand(like)], 1)

    return nn.Sequential(
        Places(),
        nn.Conv2d(5, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=2, dilation=2), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=4, dilation=4), nn.ReLU(),
        nn.Conv2d(16, 1, 1),
    )  # fmt: skip


def main(file: Path = FILE) -> sp.Stream:
    if not file.exists():
        sys.exit(f"no frames at {file}; the first lines of this example say what it needs")
    with np.load(file) as clip:
        frames = clip["rgb"][:, ::2, ::2]  # every second pixel: enough, and four times as fast
        depth = clip["depth_sgm_m256"][:, ::2, ::2] / 256.0
    torch.manual_seed(0)
    torch.set_num_threads(1)  # frames are small: threads would wait for each other
    module = network()
    model = Online(module, torch.optim.Adam(module.parameters(), lr=0.003), Mask(weight=2.0))
    missed = sp.Risk(sp.losses.FalseNegatives(), level=0.1)
    stream = sp.Stream(sp.label_sets(sets=sp.sets.PixelThreshold(), risk=missed))
    halves, sizes, losses = [], [], []
    for frame, metres in zip(frames, depth, strict=True):
        known = metres > 0.0
        near = (metres < NEAR) & known
        scores = model.predict(frame)
        mask = stream.predict((scores, torch.from_numpy(known)))
        losses.append(stream.update((near, known)))
        cut = scores.numpy() >= 0.5
        halves.append(1.0 - (cut & near).sum() / near.sum() if near.any() else np.nan)
        sizes.append(np.array([mask.size, (cut & known).sum(), near.sum()]) / known.sum())
        model.learn(frame, (near, known))
    held = np.array([np.nan if loss is None else loss for loss in losses])
    first, rest = slice(0, 100), slice(100, None)
    print("near pixels left out, and pixels in the mask (how many are near, in brackets)")
    for name, part in (("frames 1 to 100", first), ("the others", rest)):
        here = np.mean(sizes[part], 0)
        print(f"{name}:")
        print(
            f"  cut at one half   {np.nanmean(halves[part]):6.1%}   {here[1]:6.1%} ({here[2]:.1%})"
        )
        print(f"  setpoint          {np.nanmean(held[part]):6.1%}   {here[0]:6.1%} ({here[2]:.1%})")
    print(stream.certificate())
    return stream


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
