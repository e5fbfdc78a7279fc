# -*- coding: latin-1 -*-
def run(inputs):
    return {"text": "café"}
