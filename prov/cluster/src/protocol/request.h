// Requests: what the protocol remembers of an operation under way. They live in pools; their ids go
// over the wire and come back in the answers that concern them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/list.h"
#include "base/status.h"
#include "carrier/carrier.h"
#include "protocol/ops.h"

namespace cluster::protocol {

using carrier::PayloadMode;
using carrier::Token;

struct Channel;

/// A part of a message that the receiver has asked for and the carrier has not taken yet.
struct PullRange {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  std::uint64_t address = 0;  ///< not 0: where the bytes belong in the receiver's memory
};

/// The pieces of a buffer, copied from an order. Only those in use are ever written: a request is made for
/// every message, and clearing room for eight would cost more than all the rest of it.
template <typename Slice>
class IovArray {
 public:
  IovArray() {}
  void add(const Slice& slice) { parts_[count_++] = slice; }
  void add(std::span<const Slice> slices) {
    for (const Slice& slice : slices) add(slice);
  }
  void replace(const Slice& slice) {
    count_ = 0;
    add(slice);
  }
  std::span<const Slice> all() const { return {parts_.data(), count_}; }

 private:
  std::size_t count_ = 0;
  union {
    std::array<Slice, kIovMax> parts_;
  };
};

/// Most parts of one message that are asked for and do not touch. Pulls come in order but for those that
/// were lost on the way; more from a peer is a breach of protocol.
inline constexpr std::size_t kPullsMax = 8;

/// An operation cut into several requests, one per remote range: complete when all of them are.
struct RmaGroup {
  std::uint32_t id = 0;
  void* context = nullptr;
  std::size_t left = 0;
  std::size_t unasked = 0;  ///< reads: ranges of which something has not been asked for yet
  Status status = Status::ok;
  bool report = true;
};

/// What an atomic operation has that others have not.
struct AtomicCall {
  std::uint32_t id = 0;
  wire::AtomicCode code;
  std::array<ConstBytes, kIovMax> compares;
  std::size_t compare_count = 0;
  std::array<Bytes, kIovMax> results;
  std::size_t result_count = 0;
  std::size_t result_base = 0;  ///< where in the results it begins
};

struct SendRequest {
  enum class Verb : std::uint8_t {
    message,
    put,     ///< remote write
    atomic,  ///< `posted` counts target bytes, `tokens` parts that have not been answered
    launch,  ///< the turn of a remote read (receive request `receiver_id`) to begin
    serve,   ///< answers a peer's remote read out of a region, or its atomic out of `copy`
  };

  enum class State : std::uint8_t {
    queued,     ///< not completely with the carrier yet
    posted,     ///< with the carrier; waits for tokens, or for `done` if it is to be confirmed
    announced,  ///< the receiver pulls; waits for `done` and for tokens of what it pulled
  };

  std::uint32_t id = 0;
  Channel* channel = nullptr;
  void* context = nullptr;
  IovArray<ConstBytes> slices;
  std::size_t length = 0;
  std::size_t posted = 0;  ///< eager: bytes the carrier has taken
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::uint32_t receiver_id = 0;  ///< announced: the receive that pulls; serves: whom it answers
  std::uint32_t tokens = 0;       ///< segments the carrier has not reported yet
  State state = State::queued;
  Verb verb = Verb::message;
  Status status = Status::ok;  ///< what the peer said about it
  bool fence = false;
  std::size_t base = 0;  ///< puts, atomics: where in the slices it begins
  RmaIov remote;         ///< puts, atomics, serves
  RmaGroup* group = nullptr;
  AtomicCall* atomic = nullptr;
  CompletionLevel completion_level = CompletionLevel::transmit;
  bool tagged = false;
  bool has_data = false;
  bool more = false;       ///< puts, atomics: another range of it follows; serves: another piece of the read
  bool continues = false;  ///< puts: another range came before it
  bool report = true;
  bool by_announcement = false;  ///< decided once: rendezvous, not eager
  bool done = false;             ///< the receiver has said so
  std::uint8_t pull_count = 0;
  std::array<PullRange, kPullsMax> pulls;
  std::unique_ptr<std::byte[]> copy;  ///< inject that found no room: the bytes it promised to keep
  Hook<SendRequest> order;            ///< Channel::waiting or Channel::streaming
  Hook<SendRequest> member;           ///< Channel::sends

  std::span<const ConstBytes> payload() const { return slices.all(); }
  /// The receiver asks for that. False if it is too much in pieces.
  bool asked_for(const PullRange& range) {
    for (std::size_t i = 0; i < pull_count && range.address == 0; ++i) {
      if (pulls[i].end != range.offset || pulls[i].address != 0) continue;
      pulls[i].end = range.end;
      return true;
    }
    if (pull_count == kPullsMax) return false;
    pulls[pull_count++] = range;
    return true;
  }
};

struct RecvRequest {
  enum class Verb : std::uint8_t {
    message,
    get,   ///< a remote read of this side
    land,  ///< a peer's large remote write, pulled into a region
  };

  std::uint32_t id = 0;
  Verb verb = Verb::message;
  RmaIov remote;         ///< get: where to read; land: where to write, and how long the whole write is
  std::size_t base = 0;  ///< get: where in the slices it begins
  RmaGroup* group = nullptr;
  void* context = nullptr;
  IovArray<Bytes> slices;
  std::size_t capacity = 0;
  Channel* from = nullptr;  ///< whom it waits for; null: anyone
  std::uint64_t tag = 0;    ///< what it waits for; the message's own once matched
  std::uint64_t ignore = 0;
  bool tagged = false;
  bool report = true;

  // Once matched:
  Channel* channel = nullptr;  ///< the sender
  std::uint64_t data = 0;
  bool has_data = false;
  bool confirm = false;
  std::uint32_t sender_id = 0;  ///< announced, or to be confirmed: the sender's request
  std::size_t total = 0;        ///< length of the message
  std::size_t wanted = 0;       ///< bytes of it that fit here
  std::size_t requested = 0;    ///< announced: bytes pulled so far, from the front
  std::size_t end = 0;          ///< announced: the bytes from here on are not pulled but fetched
  std::size_t arrived = 0;      ///< of those pulled
  std::size_t fetched = 0;      ///< by this side itself, out of the sender's memory
  std::uint64_t source = 0;     ///< announced: where the message lies there; 0: not to be reached

  // A buffer for many messages, and the receives that are pieces of it:
  std::size_t min_multi_recv = 0;  ///< buffer: not 0; it is closed when less than this is left
  std::size_t used = 0;            ///< buffer: given to pieces
  std::size_t pieces = 0;          ///< buffer: not complete yet
  bool closed = false;             ///< buffer: takes no more; ends with its last piece
  Status ending = Status::ok;      ///< buffer: why it was closed, if not for being full
  RecvRequest* buffer = nullptr;   ///< piece: of what
  bool last = false;               ///< piece: its completion gives the buffer back; land: ends the write

  Hook<RecvRequest> order;   ///< the match queue, or PullBudget::waiting
  Hook<RecvRequest> direct;  ///< Messenger::direct_
  Hook<RecvRequest> bucket;  ///< PostedIndex
  std::uint64_t number = 0;  ///< PostedIndex: in the order of posting
  bool indexed = false;      ///< PostedIndex: in a view
  Hook<RecvRequest> member;  ///< Channel::receives once announced and matched

  std::span<const Bytes> buffers() const { return slices.all(); }
  void* first_byte() const { return buffers().empty() ? nullptr : buffers()[0].data(); }
};

/// A message that came before its receive, or the announcement of one.
struct UnexpectedMessage {
  std::uint32_t id = 0;
  Channel* channel = nullptr;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  bool tagged = false;
  bool has_data = false;
  bool confirm = false;
  bool announced = false;  ///< the bytes are still with the sender
  std::uint32_t sender_id = 0;
  std::uint64_t source = 0;  ///< announced: where they lie there, if it said so
  std::size_t total = 0;
  std::size_t arrived = 0;   ///< eager: equals total once complete
  std::uint64_t charge = 0;  ///< credit it holds until it leaves the store
  std::unique_ptr<std::byte[]> bytes;
  RecvRequest* taker = nullptr;  ///< matched while parts were still on their way
  void* claimed_by = nullptr;
  bool claimed = false;
  bool discarded = false;         ///< nobody wants it: dropped when its last part is here
  Hook<UnexpectedMessage> order;  ///< the match queue
  Hook<UnexpectedMessage> first_bucket, second_bucket;  ///< UnexpectedIndex
  Hook<UnexpectedMessage> member;                       ///< Channel::unexpected

  /// May a receive that looks into the store find it?
  bool available() const { return !claimed && !discarded && taker == nullptr; }
};

}  // namespace cluster::protocol
