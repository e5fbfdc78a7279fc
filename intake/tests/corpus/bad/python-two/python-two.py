def run(inputs):
    print "looking at", inputs["text"]
    return {"text": "a room"}
