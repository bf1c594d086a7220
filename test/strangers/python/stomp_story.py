"""Tells one story of a STOMP client with stomp.py, over TCP, and prints what happened.

Arguments: host, port and version (1.0, 1.1 or 1.2). Standard input is a JSON object {login, passcode}. Each line of
standard output is a JSON list: the step, and what came of it.
"""

import json
import queue
import sys

import stomp

CONNECTIONS = {"1.0": stomp.Connection10, "1.1": stomp.Connection11, "1.2": stomp.Connection12}
SECONDS_MAX = 20
TOPIC = "/topic/dev.py"
QUEUE = "/user/queue/dev.py"


class Listener(stomp.ConnectionListener):
    """Keeps what came until it is asked for."""

    def __init__(self):
        self.connected = queue.Queue()
        self.messages = queue.Queue()
        self.receipts = queue.Queue()
        self.errors = queue.Queue()
        self.ends = queue.Queue()

    def on_connected(self, frame):
        self.connected.put(frame)

    def on_message(self, frame):
        self.messages.put(frame)

    def on_receipt(self, frame):
        self.receipts.put(frame)

    def on_error(self, frame):
        self.errors.put(frame)

    def on_disconnected(self):
        self.ends.put(True)


class Story:
    def __init__(self, host, port, version, credentials):
        self.address = (host, int(port))
        self.version = version
        self.credentials = credentials
        self.receipts = 0

    def tell(self, step, *outcome):
        print(json.dumps([step, *outcome]), flush=True)

    def connect(self, passcode=None):
        connection = CONNECTIONS[self.version]([self.address], reconnect_attempts_max=1)
        listener = Listener()
        connection.set_listener("story", listener)
        connection.connect(self.credentials["login"], passcode or self.credentials["passcode"])
        return connection, listener

    def receipt(self, listener, ask):
        """Waits for the server to say that it is done."""
        self.receipts += 1
        receipt = f"r{self.receipts}"
        ask(receipt)
        frame = listener.receipts.get(timeout=SECONDS_MAX)
        assert frame.headers["receipt-id"] == receipt, frame.headers

    def message(self, listener):
        return listener.messages.get(timeout=SECONDS_MAX)

    def leave(self, connection, listener):
        connection.disconnect(receipt="bye")
        assert listener.receipts.get(timeout=SECONDS_MAX).headers["receipt-id"] == "bye"
        listener.ends.get(timeout=SECONDS_MAX)

    def live(self, connection, listener):
        def say(body, **headers):
            self.receipt(listener, lambda receipt: connection.send(TOPIC, body, receipt=receipt, **headers))

        self.receipt(listener, lambda receipt: connection.subscribe(TOPIC, id="live", receipt=receipt))
        say("grüße 🎥", k="a: b")
        frame = self.message(listener)
        self.tell("live", frame.body, frame.headers["k"], frame.headers["subscription"])
        transaction = connection.begin()
        say("late", transaction=transaction)
        say("early")
        connection.commit(transaction)
        self.tell("transaction", self.message(listener).body, self.message(listener).body)
        aborted = connection.begin()
        say("never", transaction=aborted)
        connection.abort(aborted)
        self.receipt(listener, lambda receipt: connection.unsubscribe(id="live", receipt=receipt))
        say("unheard")
        self.tell("unsubscribed", listener.messages.qsize())

    def settle(self, act, frame, receipt):
        """Calls ack or nack as the version has it."""
        if self.version == "1.2":
            act(frame.headers["ack"], receipt=receipt)
        elif self.version == "1.1":
            act(frame.headers["message-id"], frame.headers["subscription"], receipt=receipt)
        else:
            act(frame.headers["message-id"], receipt=receipt)

    def durable(self, connection, listener):
        for body in ("1", "2", "3"):
            self.receipt(listener, lambda receipt: connection.send(QUEUE, body, receipt=receipt))
        mode = "client" if self.version == "1.0" else "client-individual"
        self.receipt(listener, lambda receipt: connection.subscribe(QUEUE, id="q", ack=mode, receipt=receipt))
        frames = [self.message(listener) for _ in range(3)]
        self.tell("given", *[frame.body for frame in frames])
        self.receipt(listener, lambda receipt: self.settle(connection.ack, frames[0], receipt))
        if self.version != "1.0":
            self.receipt(listener, lambda receipt: self.settle(connection.nack, frames[1], receipt))

    def again(self, connection, listener):
        self.receipt(listener, lambda receipt: connection.subscribe(QUEUE, id="q", ack="client", receipt=receipt))
        frames = [self.message(listener) for _ in range(2)]
        self.tell("again", *[[frame.body, frame.headers.get("redelivered")] for frame in frames])
        self.receipt(listener, lambda receipt: self.settle(connection.ack, frames[-1], receipt))
        self.tell("left", listener.messages.qsize())

    def refused(self):
        connection, listener = self.connect(passcode="kat_nobody")
        headers = listener.errors.get(timeout=SECONDS_MAX).headers
        listener.ends.get(timeout=SECONDS_MAX)
        self.tell("refused", headers["code"], headers["reason"])

    def run(self):
        connection, listener = self.connect()
        self.tell("connected", listener.connected.get(timeout=SECONDS_MAX).headers["version"])
        self.live(connection, listener)
        self.durable(connection, listener)
        self.leave(connection, listener)
        connection, listener = self.connect()
        listener.connected.get(timeout=SECONDS_MAX)
        self.again(connection, listener)
        self.leave(connection, listener)
        self.refused()
        self.tell("end")


host, port, version = sys.argv[1:]
Story(host, port, version, json.load(sys.stdin)).run()
