def run(inputs):
    text = inputs["text"]
	return {"text": text}
