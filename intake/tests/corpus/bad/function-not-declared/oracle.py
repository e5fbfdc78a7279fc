def run(inputs):
    return {}
