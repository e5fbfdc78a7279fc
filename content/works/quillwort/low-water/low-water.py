"""The storyteller of "Low Water": a night at a canal lock, told one command at a time.

run({"command": "take lamp then go north", "state": ""})
-> {"text": ["…"], "state": "…", "place": "Lock side", "ways": ["south"], "things": [], "done": 1, "of": 7, "ended": …}

The state is the whole game as a JSON string that the page keeps and sends back. Anybody may have changed it, so it is checked
before it is believed.
"""

import json
import re

COMMAND_CHARS_MAX = 200
COMMANDS_MAX = 8
HELD, NOWHERE = "you", "nowhere"

PLACES = {  # name, what one sees, ways out
    "lock": ("Lock side", "A canal lock at night, deep and stone-lined. A wooden gate waits at its far end, with a paddle gear and a "
             "brass bell beside it. The cottage is south, the towpath east, and a boathouse stands to the west.",
             {"south": "cottage", "east": "towpath", "west": "boathouse", "down": "chamber"}),
    "cottage": ("The keeper's cottage", "A bed, a stove gone out, a mantelpiece. The keeper is at her sister's and has left you in "
                "charge. The door is north.", {"north": "lock"}),
    "towpath": ("Towpath", "Mud, nettles, and the canal as still as a plate. The lock is west. Reeds whisper to the north, and south "
                "the path ducks under a bridge.", {"west": "lock", "north": "reeds", "south": "bridge"}),
    "reeds": ("Reed bed", "Reeds taller than you are, around a nest the size of a cartwheel. The towpath is south.",
              {"south": "towpath"}),
    "bridge": ("Under the bridge", "Your steps come back to you from the brick. Against the wall stands a tool box. The way out is "
               "north.", {"north": "towpath"}),
    "boathouse": ("Boathouse", "Ropes, oars, a punt with a hole in it, and the smell of tar. The door is east.", {"east": "lock"}),
    "chamber": ("Bottom of the lock", "Slimy walls, and a strip of stars above. Water stands ankle-deep before the gate. A ladder "
                "goes up.", {"up": "lock"}),
}

THINGS = {  # what can be carried, and where it is at first
    "lamp": "cottage", "matches": "cottage", "biscuits": "cottage", "letter": "cottage", "oil": NOWHERE, "key": NOWHERE,
    "windlass": "boathouse", "branch": "chamber",
}

SEEN = {  # what can be looked at: where (for what cannot be carried), and what one sees
    "lamp": ("", "A storm lamp with a clean glass."), "matches": ("", "Half a box."), "letter": ("", "You could read it."),
    "biscuits": ("", "A tin of oat biscuits. Somebody has drawn a goose on the lid."), "oil": ("", "A can with a long spout."),
    "key": ("", "Iron, polished by years of being sat on."), "windlass": ("", "An iron crank for the paddle gear."),
    "branch": ("", "Willow, as thick as your arm, wedged under the gate."),
    "gate": ("lock chamber", "Two tons of oak. It opens when the water is level."), "bell": ("lock", "Boats wait for it."),
    "paddle": ("lock", "A toothed bar and a square spindle. A windlass would fit."), "door": ("lock", "Black with tar."),
    "bed": ("cottage", "Tempting."),
    "goose": ("reeds", "Large, white, certain of itself. It sits on something iron."),
    "box": ("bridge", "The lid is not locked."), "punt": ("boathouse", "A cat looks out of the hole, and goes back to sleep."),
}
WORDS = {  # other words for them
    "lamp": "lantern light", "matches": "match", "biscuits": "biscuit tin", "letter": "note page", "oil": "can",
    "windlass": "crank handle", "branch": "log stick willow", "goose": "bird", "box": "toolbox lid", "paddle": "gear sluice spindle",
    "gate": "gates beam", "door": "boathouse padlock", "punt": "boat",
}
DIRECTIONS = {"north": "n", "south": "s", "east": "e", "west": "w", "up": "u climb", "down": "d"}
VERBS = {
    "look": "l examine x search", "take": "get grab pick pull free", "inventory": "i inv", "read": "",
    "open": "unlock push", "light": "fill pour strike", "give": "feed offer", "wind": "turn crank empty", "use": "put", "ring": "",
    "wait": "z sit sleep", "talk": "ask greet stroke", "hint": "", "help": "", "go": "walk run enter", "restart": "",
}
USED_TO = {"windlass": "wind", "paddle": "wind", "key": "open", "matches": "light", "oil": "light", "lamp": "light",
           "biscuits": "give", "letter": "read", "bell": "ring", "gate": "open", "box": "open"}
FILLER = "|the|a|an|to|with|at|on|in|into|of|my|some|please|from|under|out|it|for|"
HINTS = {  # the seven things to do, in a good order
    "read": "Read the letter in the cottage.",
    "lit": "The lamp needs oil, from the box under the bridge. The matches are in the cottage.",
    "key": "The goose likes oat biscuits. Then take the key.",
    "unlocked": "Open the boathouse door with the key.",
    "clear": "Go down the ladder while the water is low, and take the branch.",
    "full": "Wind the paddle at the lock. The windlass is in the boathouse.",
    "open": "Open the gate.",
}


def fresh() -> dict:
    return {"at": "cottage", "where": dict(THINGS), "flags": [], "turns": 0}


def believe(text: object) -> dict | None:
    """The state as a game, or None when it is none of ours."""
    try:
        game = json.loads(text) if isinstance(text, str) and len(text) < 4000 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(game, dict) or game.get("at") not in list(PLACES):
        return None
    where, flags, turns = game.get("where"), game.get("flags"), game.get("turns")
    if not isinstance(where, dict) or set(where) != set(THINGS) or not isinstance(flags, list) or not isinstance(turns, int):
        return None
    if any(spot not in [*PLACES, HELD, NOWHERE] for spot in where.values()):
        return None
    known = [flag for flag in (*HINTS, "fed", "ended") if flag in flags]
    return {"at": game["at"], "where": where, "flags": known, "turns": max(0, min(turns, 9999))}


class Night:
    """One game while a command is carried out. Each `do_…` method is a verb and returns what the player reads."""

    def __init__(self, game: dict) -> None:
        self.game, self.where, self.flags = game, game["where"], game["flags"]

    def mark(self, flag: str) -> None:
        if flag not in self.flags:
            self.flags.append(flag)

    def dark(self) -> bool:
        return self.game["at"] == "boathouse" and "lit" not in self.flags

    def here(self) -> list:
        return [] if self.dark() else [name for name, spot in self.where.items() if spot == self.game["at"]]

    def near(self, thing: str) -> bool:
        return self.where.get(thing) == HELD or thing in self.here() or self.game["at"] in SEEN.get(thing, ("", ""))[0].split()

    def describe(self) -> str:
        at = self.game["at"]
        if self.dark():
            return "It is as dark as inside a boot. You can make out the door to the east, and nothing else."
        text = PLACES[at][1]
        if at == "lock":
            text += " The lock is full to the brim." if "full" in self.flags else " The water is low, and a ladder goes down."
            text += " The gate stands open." if "open" in self.flags else ""
        if at == "reeds":
            text += " A goose stands by, full of biscuit." if "fed" in self.flags else " On it sits a goose, and looks at you."
        return text + (f" You see: {', '.join(self.here())}." if self.here() else "")

    def do_look(self, things: list) -> str:
        if not things:
            return self.describe()
        return SEEN[things[0]][1] if things[0] in SEEN and self.near(things[0]) and not self.dark() else "You see no such thing here."

    def do_inventory(self, _: list) -> str:
        held = [name for name, spot in self.where.items() if spot == HELD]
        return f"You carry: {', '.join(held)}." if held else "Your hands are empty and cold."

    def do_take(self, things: list) -> str:
        wanted = self.here() if "all" in things else things
        return " ".join(self.take(thing) for thing in wanted) or "There is nothing to take."

    def take(self, thing: str) -> str:
        if thing == "goose" and self.near("goose"):
            return "The goose makes it clear that this will not happen."
        if thing not in self.here():
            return f"You have the {thing}." if self.where.get(thing) == HELD else f"You cannot take that: {thing}."
        if thing == "branch":
            self.mark("clear")
            self.where["branch"] = NOWHERE
            return "You heave until something gives. The branch drifts off down the canal. The gate can move now."
        self.where[thing] = HELD
        if thing == "key":
            self.mark("key")
        return f"Taken: {thing}."

    def do_read(self, _: list) -> str:
        if not self.near("letter"):
            return "There is nothing to read here."
        self.mark("read")
        return ("\"The Marigold comes at first light. Fill the lock, open the gate, ring the bell, in that order. The windlass is in the "
                "boathouse; it is dark in there. The goose has the key again. And look under the gate BEFORE you fill. Yours, H.\"")

    def do_open(self, things: list) -> str:
        at, thing = self.game["at"], things[0] if things else "gate"
        if at == "bridge" and thing == "box":
            if self.where["oil"] != NOWHERE:
                return "It is open, and there is nothing else in it."
            self.where["oil"] = "bridge"
            return "The lid creaks. Inside, between rags, stands a can of lamp oil."
        if at == "lock" and thing in ("door", "key"):
            if self.where["key"] != HELD:
                return "The boathouse is locked, and you have no key."
            self.mark("unlocked")
            return "The key turns as if it had been waiting. The boathouse is open."
        if at != "lock" or thing != "gate":
            return "That does not open."
        if "full" not in self.flags:
            return "You lean on the beam with all you have. The water is too low on this side, and the canal pushes back."
        if "clear" not in self.flags:
            return "It moves a hand's breadth, and jams. Something is wedged underneath. You could wind the water out again."
        self.mark("open")
        return "You walk backwards against the beam, and the gate swings, slowly, like a door in a dream. It stands open."

    def do_wind(self, _: list) -> str:
        if self.game["at"] != "lock" or "open" in self.flags:
            return "There is nothing to wind here now."
        if self.where["windlass"] != HELD:
            return "The spindle is square and bare. You need a windlass for it."
        if "full" in self.flags:
            self.flags.remove("full")
            return "You wind the other way. The water gurgles out until the ladder shows again."
        self.mark("full")
        return "You wind. The canal comes in, whispering first, then loud, and the lock fills to the brim."

    def do_light(self, things: list) -> str:
        if self.game["at"] == "lock" and "lock" in things:  # fill lock
            return self.do_wind(things)
        if "lit" in self.flags:
            return "The lamp burns."
        missing = [thing for thing in ("lamp", "oil", "matches") if not self.near(thing)]
        if missing:
            return f"For a light you need a lamp, oil and matches. You are missing: {', '.join(missing)}."
        self.where["lamp"] = HELD
        self.mark("lit")
        return "You fill the lamp and strike a match. The flame climbs, and the night takes one step back."

    def do_give(self, _: list) -> str:
        if not self.near("goose"):
            return "There is nobody here to give it to."
        if self.where["biscuits"] != HELD:
            return "The goose looks at your empty hands, and is not impressed."
        self.mark("fed")
        self.where.update(biscuits=NOWHERE, key="reeds")
        return "You open the tin. The goose rises, walks over, and eats them all, one by one, looking at you. On the nest lies a key."

    def do_use(self, things: list) -> str:
        verb = next((USED_TO[thing] for thing in things if thing in USED_TO and self.near(thing)), "wait")
        return getattr(self, f"do_{verb}")(things)

    def do_ring(self, _: list) -> str:
        if not self.near("bell"):
            return "The bell is at the lock."
        if "open" not in self.flags:
            return "It rings out. Far off a boat horn answers, and waits. The gate is still shut."
        self.mark("ended")
        return ("Before the bell has done, a lamp comes round the bend: the Marigold, low in the water, a kettle on her roof. The boatman "
                f"lifts his cap as she slides through. First light, exactly. You did it in {self.game['turns']} moves. THE END")

    def do_wait(self, _: list) -> str:
        return "An owl. The water. Nothing else happens, and it does it well."

    def do_talk(self, _: list) -> str:
        return "\"Honk,\" says the goose, and means it." if self.near("goose") else "Your voice sounds odd out here."

    def do_help(self, _: list) -> str:
        return ("Say where to go (north, down) or what to do: take lamp and matches, look at gate, open box, give biscuits to goose. "
                "Join commands with then. Stuck? Ask for a hint.")

    def do_hint(self, _: list) -> str:
        return next((text for flag, text in HINTS.items() if flag not in self.flags), "Ring the bell.")

    def do_go(self, things: list) -> str:
        ways = PLACES[self.game["at"]][2]
        target = next((target for way, target in ways.items() if way in things or target in things), None)
        if target is None:
            return "There is no way there."
        if target == "boathouse" and "unlocked" not in self.flags:
            return "The boathouse is locked."
        if target == "chamber" and "full" in self.flags:
            return "The ladder leads into deep water now."
        self.game["at"] = target
        return f"{PLACES[target][0]}. {self.describe()}"


def meaning(word: str, table: dict) -> str | None:
    return next((name for name, others in table.items() if word == name or word in others.split()), None)


def commands(text: str) -> list:
    """Cuts what was typed into commands: a verb, and what is named after it. A direction alone is a command too."""
    found, opening = [], True
    for word in re.findall(r"[a-z]+|[.,;]", text.lower()[:COMMAND_CHARS_MAX]):
        way, verb = meaning(word, DIRECTIONS), meaning(word, VERBS)
        if word in ("then", "and") or not word.isalpha():
            opening = True
        elif way and (opening or found[-1][0] == "go" and found[-1][1]):
            found.append(("go", [way]))
            opening = False
        elif opening and verb or not found and f"|{word}|" not in FILLER:
            found.append((verb or word, []))
            opening = False
        elif found and f"|{word}|" not in FILLER:
            thing = word if found[-1][0] == "go" else meaning(word, WORDS) or word
            found[-1][1].extend([way or thing] if (way or thing) not in found[-1][1] else [])
    return found[:COMMANDS_MAX]


def run(inputs: dict) -> dict:
    state = inputs.get("state") or ""
    game, text, steps = believe(state), [], commands(str(inputs.get("command") or ""))
    if game is None or ("restart", []) in steps:
        if state and game is None and '"short"' not in state:
            text.append("That page is torn, so the night begins again.")
        game, steps = fresh(), []
        text.append("You wake in the keeper's chair. It is long past midnight, and there is a letter on the table.")
        text.append(Night(game).describe())
    night = Night(game)
    for verb, things in steps:
        if "ended" in night.flags:
            break
        game["turns"] += 1
        known = verb in VERBS and verb != "restart"
        text.append(getattr(night, f"do_{verb}")(things) if known else f"I do not know how to {verb}. You can ask for help.")
    if not text:
        text.append("The night is over. Say restart to live it again." if "ended" in night.flags else "The night waits for you to speak.")
    name, _, ways = PLACES[game["at"]]
    return {
        "text": text, "state": json.dumps(game), "place": name, "ways": list(ways), "things": night.here(),
        "done": sum(flag in night.flags for flag in HINTS), "of": len(HINTS), "ended": "ended" in night.flags,
    }
