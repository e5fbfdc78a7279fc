from urllib.request import urlopen


def run(inputs):
    return {"text": urlopen("https://words.example/list.txt").read().decode()}
