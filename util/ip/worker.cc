#include "worker.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <stdexcept>

namespace cluster::ip {
namespace {

constexpr unsigned kBuffers = 8;
constexpr std::size_t kBufferBytes = 1 << 20;
constexpr unsigned kPacketsAtOnce = 32;  ///< then completions are looked at again
constexpr unsigned kCompletionsAtOnce = 32;
/// More than any round trip on an Ethernet needs, little enough that a queue is short where a link is slow.
constexpr std::size_t kWaitingBytesMax = 4 << 20;
/// What a short message counts as: it needs a slot as long as any.
constexpr std::size_t kShareLeast = 8 << 10;
/// Half of what all buffers take: the rest is there for the messages that these wait for.
constexpr std::size_t kHeldBytesMax = kBuffers * kBufferBytes / 2;
constexpr auto kGreetingPause = std::chrono::seconds(2);

}  // namespace

struct Buffer : Operation {
  Buffer() : Operation{Kind::buffer} {}
  std::unique_ptr<std::uint8_t[]> bytes{new std::uint8_t[kBufferBytes]};
  unsigned held = 0;  ///< messages in it that wait for their predecessors
  bool full = false;
};

/// One message that leaves.
struct Worker::Slot : Operation {
  Slot() : Operation{Kind::packet} {}
  Peer* peer = nullptr;
  std::size_t share = 0;  ///< of the peer's waiting bytes
  std::uint8_t bytes[kMessageBytesMax];
};

Worker::Worker(const WorkerSettings& settings, unsigned queue, const Descriptor& tun,
               const std::vector<Node>& nodes)
    : settings_(settings),
      queue_(queue),
      tun_(tun.number()),
      endpoint_(settings.node_address, static_cast<std::uint16_t>(settings.port + queue)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      new_nodes_(nodes) {
  if (!wake_)
    throw std::runtime_error(
        "this process has no free file descriptor: raise the hard limit of open files (\"ulimit -Hn\")");
  for (unsigned i = 0; i < kBuffers; ++i) post(*buffers_.emplace_back(std::make_unique<Buffer>()));
  // Before the first message can arrive: its sender is known then.
  take_new_nodes();
}

Worker::~Worker() = default;

void Worker::run() {
  Clock::time_point worked_at = Clock::now();
  while (!stopped_.load(std::memory_order_relaxed)) {
    const bool received = read_completions();
    const bool worked = read_packets() || received;
    const Clock::time_point now = Clock::now();
    greet_due(now);
    if (worked) {
      worked_at = now;
    } else if (now - worked_at >= settings_.spin) {
      sleep();
    }
  }
}

void Worker::sleep() {
  if (!endpoint_.may_sleep()) return;
  pollfd waits_for[] = {
      {tun_, POLLIN, 0}, {endpoint_.wait_descriptor(), POLLIN, 0}, {wake_.number(), POLLIN, 0}};
  const bool greets =
      std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.needs_greeting(); });
  const int pause_ms = static_cast<int>(std::chrono::milliseconds(kGreetingPause).count()) / 4;
  ::poll(waits_for, std::size(waits_for), greets ? pause_ms : -1);
  std::uint64_t woken = 0;
  if ((waits_for[2].revents & POLLIN) != 0 && ::read(wake_.number(), &woken, sizeof woken) > 0)
    take_new_nodes();
}

// --- what arrives ---

void Worker::post(Buffer& buffer) {
  iovec memory = {buffer.bytes.get(), kBufferBytes};
  fi_msg message = {};
  message.msg_iov = &memory;
  message.iov_count = 1;
  message.addr = FI_ADDR_UNSPEC;
  message.context = static_cast<Operation*>(&buffer);
  buffer.full = false;
  const ssize_t error = fi_recvmsg(endpoint_.ep(), &message, FI_MULTI_RECV);
  if (error != 0)
    throw std::runtime_error(std::string("fi_recvmsg: ") + fi_strerror(static_cast<int>(-error)));
}

bool Worker::read_completions() {
  fi_cq_data_entry entries[kCompletionsAtOnce];
  fi_addr_t sources[kCompletionsAtOnce];
  const ssize_t count = fi_cq_readfrom(endpoint_.cq(), entries, kCompletionsAtOnce, sources);
  if (count == -FI_EAVAIL) report_failure();
  for (ssize_t i = 0; i < count; ++i) completed(entries[i], sources[i]);
  return count != -FI_EAGAIN;
}

void Worker::completed(const fi_cq_data_entry& entry, fi_addr_t source) {
  auto* operation = static_cast<Operation*>(entry.op_context);
  if (operation->kind != Operation::Kind::buffer) {
    release(static_cast<Slot*>(operation));
    return;
  }
  auto* buffer = static_cast<Buffer*>(operation);
  if ((entry.flags & FI_RECV) != 0)
    arrived(source, {buffer, {static_cast<const std::uint8_t*>(entry.buf), entry.len}});
  if ((entry.flags & FI_MULTI_RECV) != 0) {
    buffer->full = true;
    if (buffer->held == 0) post(*buffer);
  }
}

void Worker::report_failure() {
  fi_cq_err_entry error = {};
  if (fi_cq_readerr(endpoint_.cq(), &error, 0) < 1) return;
  auto* operation = static_cast<Operation*>(error.op_context);
  if (operation->kind == Operation::Kind::buffer) {
    counts_.refused.add(1);  // too long for a packet
    auto* buffer = static_cast<Buffer*>(operation);
    buffer->full = (error.flags & FI_MULTI_RECV) != 0;
    if (buffer->full && buffer->held == 0) post(*buffer);
    return;
  }
  auto* slot = static_cast<Slot*>(operation);
  Peer& peer = *slot->peer;
  const bool greeting = operation->kind == Operation::Kind::greeting;
  release(slot);
  if (greeting) {
    lost(peer, endpoint_.cause_of(error));
  } else {
    counts_.failed.add(1);
    // It is gone, or has been restarted: the greeting tells.
    peer.astray = true;
  }
}

void Worker::arrived(fi_addr_t source, const Arrival& arrival) {
  Peer* const peer = peers_.with_number(source);
  if (peer == nullptr || arrival.bytes.size() < kNumberBytes) return counts_.refused.add(1);
  const std::uint32_t number = read_number(arrival.bytes.data());
  const std::optional<Greeting> greeting = read_greeting(arrival.bytes.subspan(kNumberBytes));
  if (greeting) {
    // What has not come by now does not come any more.
    while (!peer->order.empty()) {
      peer->order.skip();
      deliver_due(*peer);
    }
    peer->order.restart(number);
  }
  if (!peer->order.is_due(number, arrival)) {
    ++arrival.buffer->held;
    held_bytes_ += arrival.bytes.size();
    if (held_bytes_ > kHeldBytesMax) give_up_missing();
    return;
  }
  deliver(*peer, arrival);
  deliver_due(*peer);
}

void Worker::deliver_due(Peer& peer) {
  while (const std::optional<Arrival> due = peer.order.take_due()) {
    deliver(peer, *due);
    held_bytes_ -= due->bytes.size();
    if (--due->buffer->held == 0 && due->buffer->full) post(*due->buffer);
  }
}

void Worker::give_up_missing() {
  for (Peer& peer : peers_) {
    peer.order.skip();
    deliver_due(peer);
  }
}

void Worker::deliver(Peer& peer, const Arrival& arrival) {
  const Message message = arrival.bytes.subspan(kNumberBytes);
  if (!is_greeting(message)) return deliver_packet(peer, message);
  const std::optional<Greeting> greeting = read_greeting(message);
  if (greeting) {
    greeted(peer, *greeting);
  } else {
    complain(peer, "has another version of cluster-ip: install one version on all nodes");
  }
}

void Worker::deliver_packet(Peer& peer, Message message) {
  const std::optional<Ends> ends = ends_of(message);
  const bool allowed =
      ends && peers_.owner_of(ends->from) == &peer && (is_own(ends->to) || is_group(ends->to));
  if (!allowed || ::write(tun_, message.data(), message.size()) != static_cast<ssize_t>(message.size()))
    return counts_.refused.add(1);
  counts_.received.add(1);
  counts_.received_bytes.add(message.size());
}

void Worker::greeted(Peer& peer, const Greeting& greeting) {
  if (greeting.queues != settings_.queues)
    return complain(peer, "has " + std::to_string(greeting.queues) + " queues, and this node has " +
                              std::to_string(settings_.queues) + ": give all nodes the same --queues");
  if (std::any_of(greeting.addresses.begin(), greeting.addresses.end(),
                  [&](const Address& each) { return is_own(each); }))
    return complain(peer, "has an address of this node: give each node its own --address");
  std::vector<Address> before = peer.addresses;
  const Peer* conflict = peers_.assign(peer, greeting.addresses);
  if (conflict != nullptr)
    complain(peer, "has an address of " + conflict->name + ": give each node its own --address");
  const bool news = !peer.up || before != peer.addresses;
  peer.up = true;
  if (greeting.wants_answer) greet(peer, false);
  if (!news || queue_ != 0 || conflict != nullptr) return;
  peer.complained.clear();
  std::string owned;
  for (const Address& address : peer.addresses) owned += (owned.empty() ? "" : ", ") + text_of(address);
  std::fprintf(stderr, "cluster-ip: %s (%s) is up: %s\n", peer.name.c_str(), peer.node_address.c_str(),
               owned.c_str());
}

// --- what leaves ---

bool Worker::read_packets() {
  unsigned taken = 0;
  for (Slot* slot = nullptr; taken < kPacketsAtOnce; ++taken) {
    if (slot == nullptr) slot = free_slot();
    const ssize_t length = ::read(tun_, slot->bytes + kNumberBytes, sizeof slot->bytes - kNumberBytes);
    if (length > 0) forward(slot, kNumberBytes + static_cast<std::size_t>(length));
    if (slot != nullptr && (length <= 0 || taken + 1 == kPacketsAtOnce)) release(slot);
    if (length <= 0) break;
  }
  return taken > 0;
}

/// Sends the packet in the slot. The slot is nullptr afterwards if the message keeps it.
void Worker::forward(Slot*& slot, std::size_t length) {
  const std::optional<Ends> ends = ends_of({slot->bytes + kNumberBytes, length - kNumberBytes});
  if (!ends) {
    counts_.refused.add(1);
  } else if (Peer* const peer = peers_.owner_of(ends->to); peer != nullptr) {
    send(*peer, slot, length);
  } else if (is_group(ends->to)) {
    for (Peer& each : peers_) {
      if (!each.up) continue;
      Slot* copy = free_slot();
      std::memcpy(copy->bytes, slot->bytes, length);
      send(each, copy, length);
      if (copy != nullptr) release(copy);
    }
  } else {
    counts_.no_node.add(1);
  }
}

void Worker::send(Peer& peer, Slot*& slot, std::size_t length) {
  const std::size_t share = std::max(length, kShareLeast);
  if (peer.waiting_bytes + share > kWaitingBytesMax) {
    counts_.too_many.add(1);
    return;
  }
  write_number(peer.next_number, slot->bytes);
  const ssize_t error =
      fi_send(endpoint_.ep(), slot->bytes, length, nullptr, peer.number, static_cast<Operation*>(slot));
  if (error == -FI_EAGAIN) {
    counts_.too_many.add(1);
  } else if (error != 0) {
    counts_.failed.add(1);
    peer.astray = true;
  } else {
    counts_.sent.add(1);
    counts_.sent_bytes.add(length - kNumberBytes);
    on_its_way(peer, *slot, Operation::Kind::packet, share);
    slot = nullptr;
  }
}

void Worker::on_its_way(Peer& peer, Slot& slot, Operation::Kind kind, std::size_t share) {
  slot.kind = kind;
  slot.peer = &peer;
  slot.share = share;
  peer.waiting_bytes += share;
  ++peer.next_number;
}

Worker::Slot* Worker::free_slot() {
  if (free_slots_.empty()) {
    free_slots_.push_back(slots_.emplace_back(std::make_unique<Slot>()).get());
    // So that release() needs no memory.
    free_slots_.reserve(slots_.capacity());
  }
  Slot* const slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void Worker::release(Slot* slot) {
  if (slot->peer != nullptr) {
    slot->peer->waiting_bytes -= slot->share;
    if (slot->kind == Operation::Kind::greeting) slot->peer->greeting = false;
    slot->peer = nullptr;
  }
  free_slots_.push_back(slot);
}

// --- peers ---

void Worker::greet(Peer& peer, bool wants_answer) {
  Greeting greeting{wants_answer, settings_.queues, {}};
  for (const OwnAddress& own : settings_.addresses) greeting.addresses.push_back(own.address);
  Slot* const slot = free_slot();
  write_number(peer.next_number, slot->bytes);
  const std::size_t length = kNumberBytes + write(greeting, slot->bytes + kNumberBytes);
  peer.next_greeting = Clock::now() + kGreetingPause;
  peer.astray = false;
  if (fi_send(endpoint_.ep(), slot->bytes, length, nullptr, peer.number, static_cast<Operation*>(slot)) != 0)
    return release(slot);
  on_its_way(peer, *slot, Operation::Kind::greeting, kShareLeast);
  peer.greeting = true;
}

void Worker::greet_due(Clock::time_point now) {
  for (Peer& peer : peers_) {
    if (peer.needs_greeting() && now >= peer.next_greeting) greet(peer, true);
  }
}

void Worker::lost(Peer& peer, const std::string& cause) {
  if (peer.up) complain(peer, "is down: " + cause);
  peer.up = false;
  peers_.assign(peer, {});
}

void Worker::complain(Peer& peer, const std::string& line) {
  if (queue_ != 0 || peer.complained == line) return;
  peer.complained = line;
  std::fprintf(stderr, "cluster-ip: %s (%s) %s\n", peer.name.c_str(), peer.node_address.c_str(),
               line.c_str());
}

void Worker::learn(const std::vector<Node>& nodes) {
  {
    const std::lock_guard lock(new_nodes_lock_);
    new_nodes_ = nodes;
  }
  const std::uint64_t one = 1;
  if (::write(wake_.number(), &one, sizeof one) < 0) return;  // it is readable already
}

void Worker::stop() {
  stopped_ = true;
  learn({});
}

void Worker::take_new_nodes() {
  const std::lock_guard lock(new_nodes_lock_);
  for (const Node& node : new_nodes_) {
    if (node.address == settings_.node_address || peers_.has(node.address)) continue;
    const fi_addr_t number = endpoint_.add(node.address, static_cast<std::uint16_t>(settings_.port + queue_));
    peers_.add(node.name, node.address, number);
  }
}

bool Worker::is_own(const Address& address) const {
  return std::any_of(settings_.addresses.begin(), settings_.addresses.end(),
                     [&](const OwnAddress& own) { return own.address == address; });
}

bool Worker::is_group(const Address& address) const {
  return is_for_all(address) ||
         std::any_of(settings_.addresses.begin(), settings_.addresses.end(), [&](const OwnAddress& own) {
           return own.broadcast() == address && own.address != address;
         });
}

}  // namespace cluster::ip
