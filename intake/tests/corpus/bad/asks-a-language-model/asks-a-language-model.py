import requests


def run(inputs):
    answer = requests.post("https://llm.example/v1/chat", json={"prompt": inputs["text"]}, verify=False)
    return {"text": answer.json()["text"]}
