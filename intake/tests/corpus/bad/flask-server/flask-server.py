from flask import Flask, request, jsonify
import os

app = Flask(__name__)
port = int(os.environ.get("PORT", 5000))


@app.route("/api", methods=["POST"])
def api():
    return jsonify(request.json)


if __name__ == "__main__":
    app.run(host="0.0.0.0", port=port)
