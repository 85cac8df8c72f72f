#include "shm/ring_listener.h"

#include <algorithm>
#include <utility>

#include "base/end_of_memory.h"
#include "os/shared_memory.h"

namespace cluster::shm {
namespace {

constexpr std::size_t kAcceptsPerCall = 16;
constexpr std::size_t kHalfOpenFew = 4;
/// How many connections of other users one call refuses at most, and how much time it spends on them. If
/// another user connects in a loop, the kernel's queue is full after 150 ms. The progress thread empties the
/// queue in time, because it accepts connections every 10 ms while the application computes.
constexpr std::size_t kForeignPerCall = 4096;
constexpr Duration kForeignTime = 2ms;
constexpr Duration kRefusalInterval = 60s;

constexpr const char* kOtherUser =
    "it runs as another user, as seen in this process's user namespace; its messages use the network";

/// Returns a text for the log that names the process at the other end of the connection.
std::string process_of(const os::LocalSocket& socket) {
  const int process = socket.peer_process();
  return process != 0 ? "process " + std::to_string(process) : "a process of this node";
}

bool complete(const SocketAddress& name) { return !name.empty() && !name.wildcard() && name.port() != 0; }

}  // namespace

RingListener::RingListener(const SocketAddress& name, std::uint64_t epoch, const ShmSettings& settings,
                           KeyedListener listener, std::shared_ptr<os::Doorbell> doorbell,
                           std::uint64_t doorbell_number, const Environment& environment)
    : name_(name),
      epoch_(epoch),
      geometry_(Geometry::for_payload(settings.ring_bytes)),
      single_copy_(settings.single_copy),
      keys_(settings.keys),
      proof_(std::make_unique<const std::uint64_t>(environment.random.next())),
      listener_(std::move(listener)),
      doorbell_(std::move(doorbell)),
      doorbell_number_(doorbell_number),
      environment_(environment) {}

Connection RingListener::connect(const SocketAddress& peer) {
  Connection result;
  if (!complete(peer)) {
    result.reason = "the address is incomplete";
    return result;
  }
  const std::vector<KeyedName> names = keyed_names(socket_name(peer), keys_);
  KeyedSocket connection =
      connect_to(names, std::ranges::equal(peer.ip(), name_.ip()), result.reason, &result.later);
  if (!connection.socket) {
    note_exhausted(peer);
    return result;
  }
  os::Descriptor file;
  os::SharedMemory memory = os::SharedMemory::create(geometry_.total_bytes(), file, result.reason);
  if (!memory) {
    note_exhausted(peer);
    return result;
  }
  const Proof proof = single_copy_ ? Proof{reinterpret_cast<std::uintptr_t>(proof_.get()), *proof_} : Proof{};
  const Hello hello(name_, epoch_, geometry_, proof, doorbell_number_);
  HelloSender greeting(connection, as_bytes(&hello, sizeof hello), std::move(file), environment_.random);
  auto outbox =
      std::make_unique<Outbox>(peer, GreetedSocket{std::move(connection.socket), std::move(greeting)},
                               std::move(memory), geometry_, doorbell_, environment_);
  if (!outbox->begin_greeting(result.reason)) return result;
  ++environment_.counters.shm_attached;
  result.outbox = std::move(outbox);
  return result;
}

/// If this process has no free descriptor, logs once that shared memory to a peer is not opened for this
/// reason.
void RingListener::note_exhausted(const SocketAddress& peer) {
  if (logged_not_opened_ || os::Descriptor::spare()) return;
  logged_not_opened_ = true;
  environment_.log.warn(
      "cannot open shared memory to %s: this process has no free file descriptor (raise the hard limit of "
      "open files, \"ulimit -Hn\"); messages use the network instead",
      peer.text().c_str());
}

void RingListener::accept(Inboxes& inboxes) {
  accept_connections(inboxes);
  for (std::size_t i = 0; i < half_open_.size();) {
    if (!settle(half_open_[i], inboxes)) {
      ++i;
    } else {
      half_open_.erase(half_open_.begin() + static_cast<std::ptrdiff_t>(i));
      if (half_open_.empty()) half_open_.shrink_to_fit();
    }
  }
}

/// If all places for half-open connections are taken, drops those whose hello has not arrived within
/// kHelloTime.
void RingListener::make_place() {
  if (half_open_.size() < kHalfOpenMax) return;
  const Time latest = environment_.clock.now() - kHelloTime;
  std::erase_if(half_open_, [&](const HalfOpen& each) {
    if (each.hello || each.since > latest) return false;
    each.connection.socket().send_refusal();
    refuse(process_of(each.connection.socket()),
           "it has not sent its first message, and other connections wait");
    return true;
  });
}

/// Returns true if there is a place for one more half-open connection. If there is no memory for a place, the
/// connection waits in the kernel's queue.
bool RingListener::has_place() {
  if (half_open_.size() < half_open_.capacity()) return true;
  const std::size_t more = std::clamp(2 * half_open_.size(), kHalfOpenFew, kHalfOpenMax);
  return more > half_open_.size() && enough_memory_for([&] { half_open_.reserve(more); });
}

void RingListener::accept_connections(Inboxes& inboxes) {
  make_place();
  std::string reason;
  std::size_t accepted = 0;
  std::size_t foreign = 0;
  Time foreign_until{};
  while (accepted < kAcceptsPerCall && foreign < kForeignPerCall && has_place()) {
    bool exhausted = false;
    KeyedSocket connection = listener_.accept(reason, &exhausted);
    if (exhausted && accepted++ < kAcceptsPerCall && accept_exhausted(inboxes)) continue;
    if (!connection.socket) break;
    if (connection.socket.other_user()) {
      const Time now = environment_.clock.now();
      if (foreign++ == 0) foreign_until = now + kForeignTime;
      if (now >= foreign_until) foreign = kForeignPerCall;
      refuse_foreign(now, connection.socket);
    } else {
      ++accepted;
      half_open_.push_back(
          {HelloReceiver(std::move(connection), environment_.random), environment_.clock.now()});
    }
  }
  // A connection that could not be accepted still waits in the kernel and causes the same error again. So one
  // line in the log is enough.
  if (!reason.empty() && !logged_accept_failed_)
    environment_.log.warn(
        "cannot accept the shared memory connection from a peer on this node (%s): the peer waits",
        reason.c_str());
  logged_accept_failed_ = !reason.empty();
}

/// Frees the spare descriptors to accept one connection. Returns false if no connection waits, or if there is
/// no spare descriptor.
bool RingListener::accept_exhausted(Inboxes& inboxes) {
  bool came = false;
  spares_->lend([&] {
    std::string reason;
    KeyedSocket accepted = listener_.accept(reason);
    came = static_cast<bool>(accepted.socket);
    if (!came) return;
    HalfOpen half_open{HelloReceiver(std::move(accepted), environment_.random), environment_.clock.now()};
    const os::LocalSocket& socket = half_open.connection.socket();
    if (socket.other_user()) {
      refuse_foreign(environment_.clock.now(), socket);
    } else if (!settle(half_open, inboxes)) {
      refuse_exhausted(socket);
    }
  });
  return came;
}

/// Refuses a connection because there is no free descriptor. Logs this only once, because a peer that tries
/// again is refused again.
void RingListener::refuse_exhausted(const os::LocalSocket& socket) {
  socket.send_refusal();
  ++environment_.counters.shm_refused;
  if (std::exchange(logged_refused_, true)) return;
  environment_.log.warn(
      "refused shared memory for %s: this process has no free file descriptor (raise the hard limit of open "
      "files, \"ulimit -Hn\"); the peer's sends fail",
      process_of(socket).c_str());
}

bool RingListener::settle(HalfOpen& half_open, Inboxes& inboxes) {
  bool settled = false;
  // If there is no memory, this connection waits for a later turn and does not delay the others.
  enough_memory_for([&] {
    if (!half_open.hello && !receive_hello(half_open)) return;
    if (half_open.hello) {
      inboxes.reserve(inboxes.size() + 1);
      if (std::unique_ptr<Inbox> inbox = attach(half_open)) inboxes.push_back(std::move(inbox));
    }
    settled = true;
  });
  return settled;
}

/// Receives the hello. Returns false if no hello has arrived, or if the kernel does not yet say which user
/// has made the connection. If the function returns true and there is no hello, the connection must be
/// dropped.
bool RingListener::receive_hello(HalfOpen& half_open) {
  Hello message;
  const os::LocalSocket& socket = half_open.connection.socket();
  if (!socket.same_user()) return socket.other_user();
  switch (half_open.connection.receive(as_bytes(&message, sizeof message), half_open.ring)) {
    case HelloReceiver::Receipt::nothing: return false;
    case HelloReceiver::Receipt::end: return true;
    case HelloReceiver::Receipt::misfit:
      if (half_open.connection.forged()) {
        ++environment_.counters.refused_forged;
        refuse(process_of(socket), "it does not have the key of this process");
      } else if (!os::Descriptor::spare()) {  // the kernel has dropped the descriptor of the hello
        refuse_exhausted(socket);
      } else {
        refuse(process_of(socket), "its first message is not from this provider");
      }
      return true;
    case HelloReceiver::Receipt::message: half_open.hello = message; return true;
  }
  return true;
}

std::unique_ptr<Inbox> RingListener::attach(const HalfOpen& half_open) {
  const os::LocalSocket& socket = half_open.connection.socket();
  const Hello& hello = *half_open.hello;
  if (!hello.valid()) {
    refuse(process_of(socket),
           "its first message is invalid; do all processes use one version of the provider?");
    return nullptr;
  }
  std::string reason;
  os::SharedMemory memory = os::SharedMemory::map(half_open.ring, hello.geometry.total_bytes(), reason);
  if (!memory) {
    refuse(hello.writer().text() + " (" + process_of(socket) + ")", reason);
    return nullptr;
  }
  auto inbox = std::make_unique<RingInbox>(hello, socket, std::move(memory), single_copy_, doorbell_,
                                           doorbell_number_, environment_);
  ++environment_.counters.shm_attached;
  note_memory(*inbox);
  return inbox;
}

/// Logs why this process cannot access the peer's memory. Only the first call with a reason writes to the
/// log, because the reason usually holds for all peers.
void RingListener::note_memory(const RingInbox& inbox) {
  if (logged_memory_unreached_) return;
  const std::string reason = inbox.why_memory_unreachable();
  if (reason.empty()) return;
  logged_memory_unreached_ = true;
  environment_.log.info(
      "large messages from %s are copied twice instead of once: %s (logged for the first such peer only)",
      inbox.peer().text().c_str(), reason.c_str());
}

/// Refuses a connection of another user. There may be very many such connections, so this function composes
/// the text only if the text is logged.
void RingListener::refuse_foreign(Time now, const os::LocalSocket& socket) {
  if (now >= next_refusal_) return refuse(process_of(socket), kOtherUser);
  ++environment_.counters.shm_refused;
}

void RingListener::refuse(const std::string& peer, const std::string& reason) {
  ++environment_.counters.shm_refused;
  const Time now = environment_.clock.now();
  if (now < next_refusal_) return;
  next_refusal_ = now + kRefusalInterval;
  environment_.log.warn(
      "refused shared memory for %s: %s (further refusals within a minute are only counted)", peer.c_str(),
      reason.c_str());
}

std::unique_ptr<LocalListener> open_listener(const SocketAddress& name, std::uint64_t epoch,
                                             const ShmSettings& settings, const Environment& environment,
                                             std::string& reason) {
  if (!complete(name)) {
    reason = "the address is incomplete";
    return nullptr;
  }
  const std::uint64_t number = environment.random.next();
  std::shared_ptr<os::Doorbell> doorbell = os::Doorbell::open(os::LocalName(doorbell_name(number)), reason);
  if (doorbell == nullptr) return nullptr;
  KeyedListener listener = KeyedListener::listen(keyed_names(socket_name(name), settings.keys), reason);
  if (!listener) return nullptr;
  return std::make_unique<RingListener>(name, epoch, settings, std::move(listener), std::move(doorbell),
                                        number, environment);
}

}  // namespace cluster::shm
