import sys

name = input("What is your name? ")

while True:
    command = input("> ")
    if command == "quit":
        sys.exit()
    print("You", command)
