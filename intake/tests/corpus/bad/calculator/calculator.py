def run(inputs):
    return {"text": str(eval(inputs["text"]))}
