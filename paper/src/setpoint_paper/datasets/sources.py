"""Where each data set comes from: pages, addresses, file names, licences, sizes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class File:
    """One file of a data set.

    `names` are the names it may have, the usual one first. `url` is where it, or the container
    it lies in, is served; None where no address that we know serves it. `served` is the
    SHA-256 of what the address serves, where it is known; `blob` the name git gives to it, a SHA-1;
    `text` the SHA-256 of the unpacked file this library was tested with, line ends as \\n.
    """

    names: tuple[str, ...]
    rows: int
    url: str | None = None
    served: str | None = None
    text: str | None = None
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A data set's origin: the page to get it from, its licence, its files, and other places."""

    name: str
    page: str
    licence: str
    files: tuple[File, ...]
    elsewhere: str = ""


def container_of(url: str) -> str:
    """The name under which an address serves a file or its container."""
    return url.rpartition("/")[2]


_UCI = "https://archive.ics.uci.edu/static/public"
_DRIFT = "https://raw.githubusercontent.com/vlosing/driftDatasets/master/realWorld/outdoor"
_GAS = f"{_UCI}/270/gas+sensor+array+drift+dataset+at+different+concentrations.zip"

_BATCHES = {
    1: (445, "6b62f3e71b90f95dd9c2157fa91ffce32571faa7f474dd52f29a4ae769144625"),
    2: (1244, "4ea9490068457badf9efd0c22f359fbfce12c208cdd440526b97ac91d31b9002"),
    3: (1586, "aabf06bf8b8200740156235dc59458e06d99aa8faba4d6764a22c6b6c2674ff4"),
    4: (161, "ffc87c5146001bbe8ce90c4b2f7dad5b390ca3079f51b559032df53ffe5ff0af"),
    5: (197, "dcad4939c300a6c7d9f41b9470a9253eecc0ebc5c2c4e940d8ae20b8fc4240d0"),
    6: (2300, "297d3a8b594dee4e2f4d7d2c4f5c485939fa708c10b5a11ed5cce95e05049afb"),
    8: (294, "58146b3e2dd68b125b2d5432cdd4968ec1fff47464ceb04282382181932d49be"),
    9: (470, "51f368ae8dee5d285be7f2029770e10eb12f342578830bc40ea852db19d19c9b"),
}

_RRC = "https://raw.githubusercontent.com/Shai128/rrc-old/fa45ebb045c270216b87c3fc3e2f15e81158a3d0"
_ACP = "https://raw.githubusercontent.com/mzaffran/AdaptiveConformalPredictionsTimeSeries/main"
_BESIDE = "the folder RCOL_datasets/real_data of https://github.com/Shai128/rrc-old"

_ALL = (
    Source("power", "https://archive.ics.uci.edu/dataset/849", "CC BY 4.0", (
        File(("tetuan_power.csv", "Tetuan City power consumption.csv"), 52_416,
             f"{_UCI}/849/power+consumption+of+tetouan+city.zip",
             text="d5f8e1062bbc30c0f4855d61d33103f5185ad4e70ed0e5a42393975d536dcb55"),
    )),
    Source("energy", "https://archive.ics.uci.edu/dataset/374", "CC BY 4.0", (
        File(("energydata_complete.csv", "energy.csv"), 19_735,
             f"{_UCI}/374/appliances+energy+prediction.zip",
             text="e7601453ceb2f346d6d721480d74438422705ce5ac5c504c1addfac540dff413"),
    )),
    Source("traffic", "https://archive.ics.uci.edu/dataset/492", "CC BY 4.0", (
        File(("Metro_Interstate_Traffic_Volume.csv", "traffic.csv"), 48_204,
             f"{_UCI}/492/metro+interstate+traffic+volume.zip",
             text="0411ba6c43127a29cefa4d8f39708b9d77979d9dcf895f2d212506fe947b673c"),
    )),
    # In a folder the first file is taken: the paper's own before the stand-in, which is from
    # amprion.net, its licence not known. The page needs an account; the authors keep the same file
    # beside their code.
    Source("wind", "https://www.kaggle.com/datasets/l3llff/wind-power", "see the page", (
        File(("wind_power.csv",), 385_566, f"{_RRC}/RCOL_datasets/real_data/wind_power.csv",
             blob="97c6949b08fd8e10656c765151d7a8827db36350"),
        File(("amprion_wind_15min_2011_2017.csv",), 239_588,
             text="608f92368768abd089a111f7a23e146000e3a8617ee9eddd28e4f1be8cdc654f"),
    ), f"{_BESIDE}; the stand-in is a file of the columns dt and MW"),
    Source("prices", "https://github.com/mzaffran/AdaptiveConformalPredictionsTimeSeries", "MIT", (
        File(("Prices_2016_2019_extract.csv",), 34_896,
             f"{_ACP}/data_prices/Prices_2016_2019_extract.csv",
             served="860ec42d2b3c2174b1cc76b475d5c351c52ba6562b60d0bd8c4ec6f3eeba0430",
             text="860ec42d2b3c2174b1cc76b475d5c351c52ba6562b60d0bd8c4ec6f3eeba0430"),
    ), _BESIDE),
    Source("gas_drift", "https://archive.ics.uci.edu/dataset/270", "CC BY 4.0", tuple(
        File((f"batch{batch}.dat",), rows, _GAS, text=text)
        for batch, (rows, text) in _BATCHES.items()
    )),
    Source("outdoor", "https://github.com/vlosing/driftDatasets", "cite Losing et al. 2015", (
        File(("outdoorStream.data",), 4_000, f"{_DRIFT}/outdoorStream.data",
             served="53f9d793056bf60f832ded0122a9f7286ea35e42fa019d2f4b2158bf6ef4ec1b",
             text="53f9d793056bf60f832ded0122a9f7286ea35e42fa019d2f4b2158bf6ef4ec1b"),
        File(("outdoorStream.labels",), 4_000, f"{_DRIFT}/outdoorStream.labels",
             served="e2dceebd3ab87380f7d60c03d8838a07135ba661ba0d626ab519bd97d6244435",
             text="e2dceebd3ab87380f7d60c03d8838a07135ba661ba0d626ab519bd97d6244435"),
    )),
    Source("power_supply", "https://www.cse.fau.edu/~xqzhu/stream.html", "see the page", (
        File(("powersupply.arff",), 29_928,
             "https://www.cse.fau.edu/~xqzhu/Stream/powersupply.arff",
             text="3922fce2b263777668bf62f5203650a32b8a79e211132c512c3ca1e9807c1c90"),
    )),
    # MULAN serves a .rar, which Python cannot read: River's copy of it is fetched instead.
    Source("yeast", "https://mulan.sourceforge.net/datasets-mlc.html", "see the page", (
        File(("yeast.csv", "yeast.arff"), 2_417,
             "https://raw.githubusercontent.com/online-ml/river/main/river/datasets/yeast.csv.gz",
             text="fd17cb9b53acaaf5e82a9e0795e2667167775915c0e32c1f6fe0fadb0d3bd703"),
    )),
)  # fmt: skip

SOURCES = {source.name: source for source in _ALL}

_DEPTH = (
    # Both are reduced copies of what the pages offer: no address serves them.
    Source("kitti_clip", "https://www.cvlibs.net/datasets/kitti/eval_odometry.php",
           "CC BY-NC-SA 3.0", (File(("kitti_odom00_208x64.npz",), 500),)),
    Source("kitchen_clip", "https://www.microsoft.com/en-us/research/project/rgb-d-dataset-7-scenes/",
           "non-commercial research", (File(("7scenes_kitchen_128x96.npz",), 1_000),)),
    # Raw drives and annotated depth maps come after registration, file by file.
    Source("kitti", "https://www.cvlibs.net/datasets/kitti/eval_depth.php?benchmark=depth_prediction",
           "CC BY-NC-SA 3.0", ()),
)  # fmt: skip

DEPTH_SOURCES = {source.name: source for source in _DEPTH}
