"""A rule engine for a game: players write rules, the game runs them, and a bad rule loses the turn instead of the game.

Each rule is a function `decide(me, board)` in a module of its own. It sees copies, so it cannot cheat; it may ask the
game one thing, `dice(sides)`; and it has a second and 32 MiB.
"""

from __future__ import annotations

import random

from small_python import Error, Runtime, WorkerError

RULES = {
    "brave": "def decide(me, board):\n    return 'attack' if me['health'] > 3 else 'rest'",
    "gambler": "from game import dice\ndef decide(me, board):\n    return 'attack' if dice(6) > 2 else 'rest'",
    "stuck": "def decide(me, board):\n    while True: pass",
    "greedy": "def decide(me, board):\n    return 'x' * 10 ** 9",
    "cheat": "def decide(me, board):\n    me['health'] = 99\n    open('/etc/passwd')",
}


class Player:
    """A player and the worker that runs the player's rule; a lost worker is replaced before the next turn."""

    def __init__(self, name: str, rule: str, dice: random.Random) -> None:
        self.name, self.rule, self.dice = name, rule, dice
        self.health = 5
        self.rt = self.start()

    def start(self) -> Runtime:
        rt = Runtime(timeout=1.0, memory_limit=32 << 20)
        rt.register_module("game", {"dice": self.roll})
        rt.exec(self.rule, f"{self.name}.py")
        return rt

    def roll(self, sides: int) -> int:
        return self.dice.randint(1, sides)

    def decide(self, board: dict[str, int]) -> str:
        """The player's move, or why there is none."""
        try:
            if self.rt.closed:
                self.rt = self.start()
            move = self.rt.call("decide", {"name": self.name, "health": self.health}, board)
        except (Error, WorkerError) as error:
            return f"loses the turn ({type(error).__name__}: {str(error)[:60]})"
        return move if move in ("attack", "rest") else "makes no sense"


def main() -> None:
    dice = random.Random(7)
    players = [Player(name, rule, dice) for name, rule in RULES.items()]
    for turn in range(1, 3):
        board = {player.name: player.health for player in players}
        for player in players:
            move = player.decide(board)
            player.health += {"attack": -1, "rest": 1}.get(move, -2)
            print(f"turn {turn}: {player.name} {move}, health {player.health}")
    for player in players:
        player.rt.close()


if __name__ == "__main__":
    main()
