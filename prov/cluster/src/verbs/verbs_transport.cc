#include "verbs/verbs_transport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/end_of_memory.h"
#include "transport/device_stats.h"
#include "wire/checksum.h"

namespace cluster::verbs {
namespace {

constexpr std::uint32_t kSequenceEnd = 1u << 24;  ///< also the end of the numbers of queue pairs
constexpr std::uint8_t kMtuCodeMax = 5;
constexpr unsigned kNeedsChecksums = 40;  ///< bit of a queue_pair's key: the sender's device is not exact
constexpr const char* kRefusesReads = "its queue pair refuses reads";

/// A GID travels as two numbers.
std::uint64_t half_of(const std::array<std::byte, 16>& gid, std::size_t at) {
  std::uint64_t half = 0;
  for (std::size_t i = 0; i < 8; ++i) half = half << 8 | std::to_integer<std::uint64_t>(gid[at + i]);
  return half;
}

void put_half(std::array<std::byte, 16>& gid, std::size_t at, std::uint64_t half) {
  for (std::size_t i = 8; i-- > 0; half >>= 8) gid[at + i] = static_cast<std::byte>(half);
}

}  // namespace

/// Reports nothing about reads in progress, because their receives have ended, or the endpoint closes.
ReaderConnection::~ReaderConnection() {
  owner_.reading_ -= reads_.size();
  if (open()) owner_.remove(ours_.number);
}

bool ReaderConnection::ready() {
  if (theirs_ != 0) return owner_.device_ != nullptr;
  if (open() || !peer_.channel.carrier->device_reads() || owner_.now() < offer_at_) return false;
  if (create()) {
    send_ours();
  } else {
    offer_at_ = owner_.now() + kOfferAgain;
  }
  return false;
}

bool ReaderConnection::create() {
  const transport::TransportContext& context = owner_.context_;
  if (!context.peers.is_member(peer_.channel) || !owner_.have_device() || !owner_.have_place()) return false;
  const std::optional<link::QueuePairEnd> made = owner_.device_->create();
  if (!made) return false;
  if (!owner_.add(*this, made->number)) return false;
  ours_ = *made;
  ours_.sequence = static_cast<std::uint32_t>(context.environment.random.next() % kSequenceEnd);
  used_at_ = owner_.now();
  return true;
}

/// Tells the peer how to connect to this side's queue pair.
void ReaderConnection::send_ours() {
  send({.kind = wire::SegmentKind::queue_pair,
        .id = ours_.number,
        .peer_id = theirs_,
        .offset = half_of(ours_.gid, 0),
        .total = half_of(ours_.gid, 8),
        .key = std::uint64_t{!owner_.device_->exact()} << kNeedsChecksums | std::uint64_t{ours_.reads} << 32 |
               std::uint64_t{ours_.mtu} << 24 | ours_.sequence});
}

/// Tells the peer that its queue pair `theirs` is not connected to this side.
void ReaderConnection::send_closed(std::uint32_t theirs) {
  send({.kind = wire::SegmentKind::queue_pair, .peer_id = theirs});
}

void ReaderConnection::send(const wire::Segment& segment) {
  const carrier::Carrier* const carrier = peer_.channel.carrier;
  if (carrier != nullptr && carrier->device_reads())
    owner_.context_.messenger.control().send(peer_.channel, segment);
}

/// Connects the queue pair of this side with the one in the segment.
bool ReaderConnection::connect(const wire::Segment& segment) {
  link::QueuePairEnd peer;
  put_half(peer.gid, 0, segment.offset);
  put_half(peer.gid, 8, segment.total);
  peer.number = segment.id;
  peer.sequence = static_cast<std::uint32_t>(segment.key % kSequenceEnd);
  peer.mtu = static_cast<std::uint8_t>(segment.key >> 24);
  peer.reads = static_cast<std::uint8_t>(segment.key >> 32);
  const bool valid =
      peer.number < kSequenceEnd && peer.mtu != 0 && peer.mtu <= kMtuCodeMax && peer.reads != 0;
  if (!valid || !owner_.device_->connect(ours_, peer)) return false;
  theirs_ = peer.number;
  needs_checksums_ = (segment.key >> kNeedsChecksums & 1) != 0;
  owner_.context_.environment.log.info(
      "peer %s: %s reads its long messages (queue pair %u, connected with %u)", peer_.name().text().c_str(),
      owner_.device_->name(), ours_.number, theirs_);
  return true;
}

/// Segments of this kind may overtake each other. A segment is stale if it names a queue pair that this side
/// no longer has. The peer must then destroy the queue pair that it has connected with that queue pair.
void ReaderConnection::on_queue_pair(const wire::Segment& segment) {
  const bool stale = segment.peer_id != 0 && segment.peer_id != ours_.number;
  if (segment.id == 0) {
    if (!stale && segment.peer_id != 0) break_off("the peer has closed its queue pair", false);
    return;
  }
  if (stale) return send_closed(segment.id);
  if (theirs_ != 0) break_off("the peer has another queue pair", false);
  const bool offered = open();
  if (!offered && !create()) return send_closed(segment.id);
  if (connect(segment)) {
    if (!offered) send_ours();
    return;
  }
  break_off("the queue pairs cannot be connected", false);
  send_closed(segment.id);
}

bool ReaderConnection::read(std::uint32_t id, const carrier::ExposedMemory& from, Bytes into) {
  if (theirs_ == 0 || from.key > ~std::uint32_t{0}) return false;
  const bool exact = owner_.device_->exact();
  if (!exact && !from.checksum) return false;
  const auto memory = owner_.device_->add_memory(ours_.number, into, link::DeviceUse::written_here);
  if (!memory) return false;
  const Read begun{.id = id,
                   .memory = memory->handle,
                   .whole = {into, memory->local, from.address, static_cast<std::uint32_t>(from.key)},
                   .checksum = exact ? std::nullopt : from.checksum};
  if (!enough_memory_for([&] { reads_.push_back(begun); })) {
    owner_.device_->remove_memory(memory->handle);
    return false;
  }
  used_at_ = owner_.now();
  if (reads_.size() == 1) heard_at_ = used_at_;
  ++owner_.reading_;
  ask_for_pieces();
  if (!stuck()) return true;
  reads_.pop_back();
  --owner_.reading_;
  break_off(kRefusesReads, true);
  return false;
}

const ReaderConnection::Pace& ReaderConnection::pace() const {
  return owner_.device_->exact() ? kPace : kSoftPace;
}

void ReaderConnection::ask_for_pieces() {
  for (Read& read : reads_) {
    const std::size_t size = read.whole.into.size();
    while (read.asked < size && in_flight_ < pace().pieces) {
      link::DeviceRead piece = read.whole;
      piece.into = piece.into.subspan(read.asked, std::min(pace().piece, size - read.asked));
      piece.address += read.asked;
      if (!owner_.device_->read(ours_.number, piece)) return;
      read.asked += piece.into.size();
      ++in_flight_;
    }
  }
}

void ReaderConnection::piece_over(bool succeeded) {
  if (!succeeded) return break_off("a read has failed", true);
  if (reads_.empty()) return;
  heard_at_ = used_at_ = owner_.now();
  --in_flight_;
  Read& read = reads_.front();
  const std::size_t size = read.whole.into.size();
  read.done += std::min(pace().piece, size - read.done);
  if (read.done == size) return read_over();
  ask_for_pieces();
  if (stuck()) break_off(kRefusesReads, true);
}

/// Reports the oldest read after its last piece has ended. The device loses its access to the memory before
/// the checksum is compared. Otherwise nobody would notice what the device writes after the comparison.
void ReaderConnection::read_over() {
  const Read read = reads_.front();
  owner_.device_->remove_memory(read.memory);
  if (read.checksum && wire::crc32c(0, read.whole.into) != *read.checksum)
    return break_off("its device has reported a read that has failed", true);
  reads_.pop_front();
  --owner_.reading_;
  ask_for_pieces();
  owner_.context_.messenger.device_read(peer_.channel, read.id, read.done);
  if (stuck()) break_off(kRefusesReads, true);
}

/// The only way to make sure that the device writes nothing more is to end the queue pair. Other receives
/// that use the queue pair pull what they lack.
void ReaderConnection::abandon(std::uint32_t id) {
  const auto of_it = [id](const Read& read) { return read.id == id; };
  if (std::erase_if(reads_, of_it) == 0) return;
  --owner_.reading_;
  break_off(nullptr, true);
}

bool ReaderConnection::expose(std::uint32_t id, ConstBytes bytes, carrier::ExposedMemory& exposed) {
  if (theirs_ == 0 || exposed_.contains(id)) return false;
  const auto memory = owner_.device_->add_memory(ours_.number, bytes, link::DeviceUse::read_by_peer);
  if (!memory) return false;
  if (!enough_memory_for([&] { exposed_[id] = memory->handle; })) {
    owner_.device_->remove_memory(memory->handle);
    return false;
  }
  used_at_ = owner_.now();
  exposed = {
      .address = reinterpret_cast<std::uintptr_t>(bytes.data()), .key = memory->remote, .checksum = {}};
  if (needs_checksums_) exposed.checksum = wire::crc32c(0, bytes);
  return true;
}

void ReaderConnection::conceal(std::uint32_t id) {
  const auto found = exposed_.find(id);
  if (found == exposed_.end()) return;
  owner_.device_->remove_memory(found->second);
  exposed_.erase(found);
}

/// Destroys the queue pair before the receives learn that it has ended, because a receive may then give its
/// buffer back. If the device is not exact, what it has read of a message does not count, because no checksum
/// confirms that part.
void ReaderConnection::break_off(const char* why, bool tell_peer) {
  if (!open()) return;
  if (why != nullptr) {
    owner_.context_.environment.log.info(
        "peer %s: its long messages travel in frames again, because %s (queue pair %u)",
        peer_.name().text().c_str(), why, ours_.number);
    owner_.suspect_device();
  }
  owner_.remove(ours_.number);
  ours_ = {};
  offer_at_ = owner_.now() + kOfferAgain;
  exposed_.clear();
  in_flight_ = 0;
  const std::deque<Read> cut_short = std::exchange(reads_, {});
  owner_.reading_ -= cut_short.size();
  const std::uint32_t theirs = std::exchange(theirs_, 0);
  if (tell_peer && theirs != 0) send_closed(theirs);
  for (const Read& read : cut_short)
    owner_.context_.messenger.device_read(peer_.channel, read.id, read.checksum ? 0 : read.done);
}

VerbsTransport::~VerbsTransport() {
  for (const std::unique_ptr<Peer>& peer : context_.peers.all()) close(*peer);
  if (device_ != nullptr) context_.waiter.unwatch(device_->descriptor());
}

/// Inside a node, messages need no device.
void VerbsTransport::assist(Peer& peer) {
  if (peer.channel.carrier->traits().acknowledges_on_post || peer.parts[slot()] != nullptr) return;
  auto connection = std::make_unique<ReaderConnection>(*this, peer);
  peer.channel.reads = connection.get();
  peer.parts[slot()] = std::move(connection);
}

void VerbsTransport::close(Peer& peer) {
  peer.channel.reads = nullptr;
  peer.parts[slot()].reset();
}

bool VerbsTransport::holds(const Peer& peer) const {
  const auto* const connection = static_cast<const ReaderConnection*>(peer.parts[slot()].get());
  return connection != nullptr && connection->open();
}

bool VerbsTransport::have_device() {
  if (device_ != nullptr) return true;
  const Time time = now();
  if (time < open_at_) return false;
  std::string reason;
  device_ = open_(reason);
  ask_at_ = time + kDeviceInterval;
  if (device_ == nullptr) {
    open_at_ = time + kOpenAgain;
    context_.environment.log.info("no RDMA device reads long messages, so they travel in frames: %s",
                                  reason.c_str());
    return false;
  }
  context_.waiter.watch(device_->descriptor(), *this);
  if (const std::string why = device_->keeps_nothing_because(); !why.empty() && !said_keeps_nothing_) {
    context_.environment.log.info("%s keeps no registrations of memory: %s", device_->name(), why.c_str());
    said_keeps_nothing_ = true;
  }
  return true;
}

void VerbsTransport::report_device(transport::DeviceStats& stats) const {
  if (device_ == nullptr) return;
  const link::DeviceMemoryUse memory = device_->memory_use();
  stats = {.name = device_->name(),
           .queue_pairs = connections_.size(),
           .queue_pairs_max = queue_pairs_max_,
           .hits = memory.hits,
           .misses = memory.misses,
           .dropped = memory.dropped,
           .entries = memory.entries,
           .bytes = memory.bytes,
           .bytes_max = memory.bytes_max,
           .keeps_nothing_because = device_->keeps_nothing_because()};
}

/// If all places are taken, closes the idle queue pair that was used least recently. Returns false if no
/// queue pair is idle.
bool VerbsTransport::have_place() {
  if (connections_.size() < queue_pairs_max_) return true;
  ReaderConnection* oldest = nullptr;
  for (const auto& [number, each] : connections_) {
    if (each->idle() && (oldest == nullptr || each->used_at() < oldest->used_at())) oldest = each;
  }
  if (oldest == nullptr) return false;
  oldest->break_off("other peers need a queue pair", true);
  return true;
}

/// If there is no memory for the entry, destroys the queue pair and returns false.
bool VerbsTransport::add(ReaderConnection& connection, std::uint32_t queue_pair) {
  if (enough_memory_for([&] { connections_[queue_pair] = &connection; })) return true;
  device_->destroy(queue_pair);
  return false;
}

void VerbsTransport::remove(std::uint32_t queue_pair) {
  connections_.erase(queue_pair);
  device_->destroy(queue_pair);
}

void VerbsTransport::give_back(const char* why) {
  context_.environment.log.info("%s reads no more messages: %s", device_->name(), why);
  while (!connections_.empty()) connections_.begin()->second->break_off("the device is gone", true);
  context_.waiter.unwatch(device_->descriptor());
  device_.reset();
  open_at_ = now() + kOpenAgain;
}

void VerbsTransport::ask_device(Time time) {
  ask_at_ = time + kDeviceInterval;
  if (!device_->exists()) give_back("it has failed or was removed");
}

bool VerbsTransport::receive(transport::Turn&) {
  if (reading_ == 0) return false;
  std::array<link::DeviceReadEnd, 16> ends;
  const std::size_t count = device_->poll(ends);
  for (const link::DeviceReadEnd& end : std::span(ends).first(count)) {
    const auto found = connections_.find(end.queue_pair);
    if (found != connections_.end()) found->second->piece_over(end.succeeded);
  }
  return count != 0;
}

/// Ends the queue pairs over which reads are in progress but no piece has arrived for kSilenceMax.
void VerbsTransport::transmit(transport::Turn& turn) {
  if (device_ == nullptr || !turn.now || *turn.now < review_at_) return;
  const Time time = *turn.now;
  review_at_ = time + kReviewInterval;
  std::vector<ReaderConnection*> silent;
  for (const auto& [number, each] : connections_) {
    if (each->deadline() <= time) silent.push_back(each);
  }
  for (ReaderConnection* const each : silent) each->break_off("its device does not answer", true);
  if (time >= ask_at_) return ask_device(time);
  device_->tidy();
}

void VerbsTransport::on_ready(bool) {
  if (device_ != nullptr && !device_->works()) give_back("it has failed or was removed");
}

bool VerbsTransport::prepare_sleep() { return device_ == nullptr || device_->arm(); }

Time VerbsTransport::deadline() const {
  Time next = kNever;
  if (reading_ == 0) return next;
  for (const auto& [number, each] : connections_) next = std::min(next, each->deadline());
  return next;
}

}  // namespace cluster::verbs
