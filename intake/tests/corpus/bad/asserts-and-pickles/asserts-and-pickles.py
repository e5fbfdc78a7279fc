def run(inputs):
    password = "swordfish"
    assert inputs["text"], "say something"
    return {"text": "yes" if inputs["text"] == password else "no"}
