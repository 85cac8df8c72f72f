"""The bytes of a message, and the gate for bytes from outside.

    magic "cD" | version 1 B | kind 1 B | cluster tag 4 B | sequence 4 B | number 4 B | sender | target |
    count 1 B | records | padding | signature 16 B, when there is a key

A name is one length byte and text. Node names follow the rules of host names, so a name is safe as a word of a hook, a
line of a file or an argument of Slurm, and is never an option. A record begins with its length in 2 bytes, so that a
later version can append fields that this one skips. The cluster tag keeps the agents of several clusters on one network
apart. The signature is HMAC-SHA-256 over everything before it, cut to 16 bytes. With a key only messages with a valid
signature pass. Without one any host on the network can write records, so operators' actions in them do not pass.

Replay: a replayed message changes nothing: a record counts only if its incarnation or stamp is newer than the known one
(membership.py), an answer only if its sequence number is awaited (detector.py).
"""
import hmac
import re
import struct
import zlib
from typing import NamedTuple

VERSION = 2
SIGNATURE_BYTES = 16
DATAGRAM_BYTES_MAX = 1200  # fits every path MTU that IPv6 allows
NAME_BYTES_MAX = 63
REASON_BYTES_MAX = 60
HEAD_BYTES_MAX = 200  # everything but records: head, two names, signature
RECORDS_MAX = 255
OVERHEAD_BYTES = 28  # of IPv4 and UDP
NUMBER_MAX = 2**32 - 2  # of incarnations and stamps: leaves the node room to count one further

PING, ACK, PING_REQUEST, NACK, GOSSIP, HELLO, PULL, PAGE, ECHO, ECHO_REPLY = range(1, 11)
ALIVE, SUSPECT, DOWN, LEFT = range(4)
NO_ORDER, DRAIN, ISOLATE = range(3)

_MAGIC = b"cD"
_HEAD = struct.Struct("!2sBBIII")
_RECORD = struct.Struct("!IBBIH")
_ADDRESS_BYTES = 4
_NAME = re.compile(rf"[A-Za-z0-9](?:[A-Za-z0-9._-]{{0,{NAME_BYTES_MAX - 2}}}[A-Za-z0-9])?")


class Record(NamedTuple):
    """What one node says about one node. `reason` says why it is suspect or down; for a suspect it is the name of the
    node that suspects."""
    name: str
    incarnation: int
    status: int
    address: tuple  # (IP address as bytes, port)
    reason: str = ""
    order: int = NO_ORDER
    order_stamp: int = 0
    order_reason: str = ""


class Message(NamedTuple):
    kind: int
    sequence: int
    sender: str
    target: str = ""
    number: int = 0
    records: tuple = ()
    padding: int = 0  # bytes: echoes measure the path MTU by them, pulls permit a longer answer


class Rejected(Exception):
    """Why a datagram did not pass the gate; the text is a short constant, for a counter."""


def is_name(text):
    """True for a valid node name: letters, digits, and . _ - between them."""
    return _NAME.fullmatch(text) is not None


def tag(cluster):
    return zlib.crc32(cluster.encode())


def _text(text, bytes_max):
    data = text.encode()[:bytes_max]
    while True:
        try:
            data.decode()
            return bytes([len(data)]) + data
        except UnicodeDecodeError:
            data = data[:-1]  # a character was cut


def encode_record(record):
    address, port = record.address
    body = b"".join((
        _RECORD.pack(record.incarnation, record.status, record.order, record.order_stamp, port),
        bytes([len(address)]), address, _text(record.name, NAME_BYTES_MAX), _text(record.reason, REASON_BYTES_MAX),
        _text(record.order_reason, REASON_BYTES_MAX)))
    return struct.pack("!H", len(body)) + body


def encode(message, cluster_tag, key=b""):
    data = b"".join((
        _HEAD.pack(_MAGIC, VERSION, message.kind, cluster_tag, message.sequence, message.number),
        _text(message.sender, NAME_BYTES_MAX), _text(message.target, NAME_BYTES_MAX), bytes([len(message.records)]),
        *map(encode_record, message.records), bytes(message.padding)))
    return data + sign(key, data) if key else data


def sign(key, data):
    return hmac.digest(key, data, "sha256")[:SIGNATURE_BYTES]


class _Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise Rejected("cut short")
        self.at += count
        return self.data[self.at - count:self.at]

    def text(self, bytes_max):
        length = self.take(1)[0]
        if length > bytes_max:
            raise Rejected("name too long")
        try:
            text = bytes(self.take(length)).decode()
        except UnicodeDecodeError as error:
            raise Rejected("name is no UTF-8") from error
        if not text.isprintable():
            raise Rejected("text has control characters")
        return text

    def name(self):
        text = self.text(NAME_BYTES_MAX)
        if not is_name(text):
            raise Rejected("no name of a node")
        return text


def _decode_record(data, orders):
    reader = _Reader(data)
    incarnation, status, order, stamp, port = _RECORD.unpack(reader.take(_RECORD.size))
    if status > LEFT or order > ISOLATE:
        raise Rejected("unknown status")
    if incarnation > NUMBER_MAX or stamp > NUMBER_MAX:
        raise Rejected("number too large")
    if reader.take(1)[0] != _ADDRESS_BYTES:
        raise Rejected("no IPv4 address")
    address = bytes(reader.take(_ADDRESS_BYTES)), port
    name, reason, order_reason = reader.name(), reader.text(REASON_BYTES_MAX), reader.text(REASON_BYTES_MAX)
    return Record(name, incarnation, status, address, reason, *((order, stamp, order_reason) if orders else ()))


def decode(data, cluster_tag, key=b""):
    """The message in a datagram; Rejected with the reason if it does not pass."""
    if len(data) < _HEAD.size or data[:2] != _MAGIC:
        raise Rejected("not of an agent")
    if key:
        if len(data) < _HEAD.size + SIGNATURE_BYTES:
            raise Rejected("no signature")
        signed, signature = data[:-SIGNATURE_BYTES], data[-SIGNATURE_BYTES:]
        if not hmac.compare_digest(sign(key, signed), bytes(signature)):
            raise Rejected("wrong signature")
        data = signed
    _, version, kind, said_tag, sequence, number = _HEAD.unpack_from(data)
    if version != VERSION:
        raise Rejected("another version")
    if said_tag != cluster_tag:
        raise Rejected("another cluster")
    if not PING <= kind <= ECHO_REPLY:
        raise Rejected("unknown kind")
    reader = _Reader(memoryview(data))
    reader.at = _HEAD.size
    sender, target = reader.name(), reader.text(NAME_BYTES_MAX)
    if target and not is_name(target):
        raise Rejected("no name of a node")
    records = []
    for _ in range(reader.take(1)[0]):
        records.append(_decode_record(reader.take(struct.unpack("!H", reader.take(2))[0]), orders=bool(key)))
    return Message(kind, sequence, sender, target, number, tuple(records), len(data) - reader.at)


def size_of(message):
    """Bytes of the datagram, without the signature."""
    return len(encode(message, 0))


def fitting(records, bytes_max=DATAGRAM_BYTES_MAX - HEAD_BYTES_MAX):
    """As many of the records, from the first on, as one datagram holds."""
    taken, size = [], 0
    for record in records:
        size += len(encode_record(record))
        if size > bytes_max or len(taken) == RECORDS_MAX:
            break
        taken.append(record)
    return tuple(taken)
