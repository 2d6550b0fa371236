"""The work of thumbnails.afl. A real one would read pictures; this one only names files."""

import asyncio

from afl import App, Context

app = App("thumbnails")


@app.handler("thumbnails.ListPictures")
def list_pictures(album: str) -> list[dict[str, object]]:
    return [
        {"url": f"{album}/1.jpg", "width": 800},
        {"url": f"{album}/2.jpg"},
        {"url": f"{album}/3.jpg", "width": 320},
    ]


@app.handler("thumbnails.Shrink")
async def shrink(url: str, width: int, ctx: Context) -> str:
    # the first attempt at the second picture fails; the policy of the facet tries again
    if url.endswith("2.jpg") and ctx.attempt == 1:
        raise ConnectionError("the picture could not be read")
    await asyncio.sleep(0.01)
    return url.replace(".jpg", f"-{width}.jpg")
