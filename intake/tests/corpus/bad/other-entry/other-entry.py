import asyncio


async def main(text, *, loud=False):
    await asyncio.sleep(0)
    return text.upper() if loud else text


async def run(inputs, context):
    return await main(inputs["text"])
