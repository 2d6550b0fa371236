"""The work of shipping.afl, with the schemas and enums of shop.afl as Python types."""

from dataclasses import dataclass
from enum import Enum

from afl import App

app = App("shipping")


class Size(Enum):
    small = "small"
    medium = "medium"
    large = "large"


@dataclass
class Item:
    sku: str
    size: Size
    count: int
    engraving: str | None


@dataclass
class Address:
    street: str
    city: str
    country: str


@app.handler("shop.shipping.Pack")
def pack(items: list[Item], box: Size) -> str:
    return f"{box.name} box with {sum(item.count for item in items)}"


@app.handler("shop.shipping.Label")
def label(parcel: str, to: Address, express: bool) -> str:
    speed = "express" if express else "normal"
    return f"{parcel} to {to.city} ({to.country}), {speed}"
