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
constexpr const char* kDeviceLost = "it has failed, was removed, or its port is down";

/// A GID travels as two numbers.
std::uint64_t half_of(const std::array<std::byte, 16>& gid, std::size_t at) {
  std::uint64_t half = 0;
  for (std::size_t i = 0; i < 8; ++i) half = half << 8 | std::to_integer<std::uint64_t>(gid[at + i]);
  return half;
}

void put_half(std::array<std::byte, 16>& gid, std::size_t at, std::uint64_t half) {
  for (std::size_t i = 8; i-- > 0; half >>= 8) gid[at + i] = static_cast<std::byte>(half);
}

/// Returns the peer's queue pair in the segment, or nothing if the segment makes no sense.
std::optional<link::QueuePairEnd> end_in(const wire::Segment& segment) {
  link::QueuePairEnd peer;
  put_half(peer.gid, 0, segment.offset);
  put_half(peer.gid, 8, segment.total);
  peer.number = segment.id;
  peer.sequence = static_cast<std::uint32_t>(segment.key % kSequenceEnd);
  peer.mtu = static_cast<std::uint8_t>(segment.key >> 24);
  peer.reads = static_cast<std::uint8_t>(segment.key >> 32);
  const bool valid =
      peer.number < kSequenceEnd && peer.mtu != 0 && peer.mtu <= kMtuCodeMax && peer.reads != 0;
  return valid ? std::optional(peer) : std::nullopt;
}

}  // namespace

/// Reports nothing about reads in progress, because their receives have ended, or the endpoint closes.
ReaderConnection::~ReaderConnection() {
  owner_.reading_ -= reads_.size();
  if (open()) give_up_queue_pair();
}

bool ReaderConnection::ready() {
  if (theirs_ != 0) return true;
  if (open() || !peer_.channel.carrier->device_reads() || owner_.now() < offer_at_) return false;
  if (offer()) {
    send_ours();
  } else {
    offer_at_ = owner_.now() + kOfferAgain;
  }
  return false;
}

/// Makes a queue pair of the first device that can make one. The search begins with the device that is due.
bool ReaderConnection::offer() {
  std::vector<ReaderDevice>& devices = owner_.devices_;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::size_t index = (offered_ + i) % devices.size();
    if (!create(devices[index])) continue;
    offered_ = index;
    return true;
  }
  return false;
}

bool ReaderConnection::create(ReaderDevice& device) {
  const transport::TransportContext& context = owner_.context_;
  if (!context.peers.is_member(peer_.channel) || !owner_.have(device) || !owner_.have_place()) return false;
  const std::optional<link::QueuePairEnd> made = device.device->create();
  if (!made) return false;
  if (!VerbsTransport::add(device, *this, made->number)) return false;
  device_ = &device;
  ours_ = *made;
  ours_.sequence = static_cast<std::uint32_t>(context.environment.random.next() % kSequenceEnd);
  used_at_ = owner_.now();
  return true;
}

void ReaderConnection::give_up_queue_pair() {
  VerbsTransport::remove(*std::exchange(device_, nullptr), std::exchange(ours_, {}).number);
}

/// Tells the peer how to connect to this side's queue pair.
void ReaderConnection::send_ours() {
  send({.kind = wire::SegmentKind::queue_pair,
        .id = ours_.number,
        .peer_id = theirs_,
        .offset = half_of(ours_.gid, 0),
        .total = half_of(ours_.gid, 8),
        .key = std::uint64_t{!device_->device->exact()} << kNeedsChecksums |
               std::uint64_t{ours_.reads} << 32 | std::uint64_t{ours_.mtu} << 24 | ours_.sequence});
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

/// Connects the queue pair of this side with the peer's.
bool ReaderConnection::connect(const link::QueuePairEnd& peer, bool needs_checksums) {
  if (!device_->device->connect(ours_, peer)) return false;
  theirs_ = peer.number;
  needs_checksums_ = needs_checksums;
  owner_.context_.environment.log.info(
      "peer %s: %s reads its long messages (queue pair %u, connected with %u)", peer_.name().text().c_str(),
      device_->device->name(), ours_.number, theirs_);
  return true;
}

/// If the queue pair that this side has offered cannot reach the peer's, makes one of a device that can.
/// Keeps the offer if there is no such device. `answers`: the peer has connected its queue pair with the
/// offered one already.
bool ReaderConnection::have_queue_pair_for(const link::QueuePairEnd& peer, bool answers) {
  if (open() && (answers || device_->device->reaches(peer))) return true;
  if (!owner_.context_.peers.is_member(peer_.channel)) return false;
  for (ReaderDevice& device : owner_.devices_) {
    if (!owner_.have(device) || !device.device->reaches(peer)) continue;
    if (open()) give_up_queue_pair();
    return create(device);
  }
  return false;
}

/// Segments of this kind may overtake each other. A segment is stale if it names a queue pair that this side
/// no longer has. The peer must then destroy the queue pair that it has connected with that queue pair.
void ReaderConnection::on_queue_pair(const wire::Segment& segment) {
  const bool stale = segment.peer_id != 0 && segment.peer_id != ours_.number;
  if (segment.id == 0) {
    if (stale || segment.peer_id == 0) return;
    if (theirs_ == 0) ++offered_;
    return break_off("the peer has closed its queue pair", false);
  }
  if (stale) return send_closed(segment.id);
  if (theirs_ != 0) break_off("the peer has another queue pair", false);
  const std::optional<link::QueuePairEnd> peer = end_in(segment);
  const std::uint32_t offered = ours_.number;
  if (peer && !have_queue_pair_for(*peer, segment.peer_id != 0)) return send_closed(segment.id);
  if (peer && connect(*peer, (segment.key >> kNeedsChecksums & 1) != 0)) {
    if (ours_.number != offered) send_ours();
    return;
  }
  break_off("the queue pairs cannot be connected", false);
  send_closed(segment.id);
}

bool ReaderConnection::read(std::uint32_t id, const carrier::ExposedMemory& from, Bytes into) {
  if (theirs_ == 0 || from.key > ~std::uint32_t{0}) return false;
  const bool exact = device_->device->exact();
  if (!exact && !from.checksum) return false;
  const auto memory = device_->device->add_memory(ours_.number, into, link::DeviceUse::written_here);
  if (!memory) {
    owner_.note_refused_memory(*device_);
    return false;
  }
  const Read begun{.id = id,
                   .memory = memory->handle,
                   .whole = {into, memory->local, from.address, static_cast<std::uint32_t>(from.key)},
                   .checksum = exact ? std::nullopt : from.checksum};
  if (!enough_memory_for([&] { reads_.push_back(begun); })) {
    device_->device->remove_memory(memory->handle);
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
  return device_->device->exact() ? kPace : kSoftPace;
}

void ReaderConnection::ask_for_pieces() {
  for (Read& read : reads_) {
    const std::size_t size = read.whole.into.size();
    while (read.asked < size && in_flight_ < pace().pieces) {
      link::DeviceRead piece = read.whole;
      piece.into = piece.into.subspan(read.asked, std::min(pace().piece, size - read.asked));
      piece.address += read.asked;
      if (!device_->device->read(ours_.number, piece)) return;
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
  device_->device->remove_memory(read.memory);
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
  const auto memory = device_->device->add_memory(ours_.number, bytes, link::DeviceUse::read_by_peer);
  if (!memory) {
    owner_.note_refused_memory(*device_);
    return false;
  }
  if (!enough_memory_for([&] { exposed_[id] = memory->handle; })) {
    device_->device->remove_memory(memory->handle);
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
  device_->device->remove_memory(found->second);
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
    owner_.suspect(*device_);
  }
  give_up_queue_pair();
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

VerbsTransport::VerbsTransport(const transport::TransportContext& context,
                               std::vector<link::OpenReadDevice> devices, std::size_t queue_pairs_max)
    : context_(context), devices_(devices.size()), queue_pairs_max_(queue_pairs_max) {
  for (std::size_t i = 0; i < devices.size(); ++i) devices_[i].open = std::move(devices[i]);
}

VerbsTransport::~VerbsTransport() {
  for (const std::unique_ptr<Peer>& peer : context_.peers.all()) close(*peer);
  for (const ReaderDevice& each : devices_) {
    if (each.device != nullptr) context_.waiter.unwatch(each.device->descriptor());
  }
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

bool VerbsTransport::have(ReaderDevice& device) {
  if (device.device != nullptr) return true;
  const Time time = now();
  if (time < device.open_at) return false;
  std::string reason;
  device.device = device.open(reason);
  device.ask_at = time + kDeviceInterval;
  if (device.device == nullptr) {
    device.open_at = time + kOpenAgain;
    context_.environment.log.info("no RDMA device reads long messages, so they travel in frames: %s",
                                  reason.c_str());
    return false;
  }
  context_.waiter.watch(device.device->descriptor(), *this);
  const std::string why = device.device->keeps_nothing_because();
  if (!why.empty() && !std::exchange(device.said_keeps_nothing, true))
    context_.environment.log.info("%s keeps no registrations of memory: %s", device.device->name(),
                                  why.c_str());
  return true;
}

/// Warns once, because users can often mend the cause: the limit of locked memory.
void VerbsTransport::note_refused_memory(ReaderDevice& device) const {
  const std::string why = device.device->refused_memory_because();
  if (!why.empty() && !std::exchange(device.said_refuses_memory, true))
    context_.environment.log.warn("%s cannot register memory, so long messages travel in frames: %s",
                                  device.device->name(), why.c_str());
}

void VerbsTransport::report_devices(std::vector<transport::DeviceStats>& stats) const {
  for (const ReaderDevice& each : devices_) {
    if (each.device == nullptr) continue;
    const link::DeviceMemoryUse memory = each.device->memory_use();
    stats.push_back({.name = each.device->name(),
                     .queue_pairs = each.connections.size(),
                     .queue_pairs_max = queue_pairs_max_,
                     .hits = memory.hits,
                     .misses = memory.misses,
                     .dropped = memory.dropped,
                     .entries = memory.entries,
                     .bytes = memory.bytes,
                     .bytes_max = memory.bytes_max,
                     .keeps_nothing_because = each.device->keeps_nothing_because()});
  }
}

/// If all places are taken, closes the idle queue pair that was used least recently. Returns false if no
/// queue pair is idle.
bool VerbsTransport::have_place() {
  std::size_t taken = 0;
  ReaderConnection* oldest = nullptr;
  each_connection([&](ReaderConnection& each) {
    ++taken;
    if (each.idle() && (oldest == nullptr || each.used_at() < oldest->used_at())) oldest = &each;
  });
  if (taken < queue_pairs_max_) return true;
  if (oldest == nullptr) return false;
  oldest->break_off("other peers need a queue pair", true);
  return true;
}

/// If there is no memory for the entry, destroys the queue pair and returns false.
bool VerbsTransport::add(ReaderDevice& device, ReaderConnection& connection, std::uint32_t queue_pair) {
  if (enough_memory_for([&] { device.connections[queue_pair] = &connection; })) return true;
  device.device->destroy(queue_pair);
  return false;
}

void VerbsTransport::remove(ReaderDevice& device, std::uint32_t queue_pair) {
  device.connections.erase(queue_pair);
  device.device->destroy(queue_pair);
}

void VerbsTransport::give_back(ReaderDevice& device, const char* why) {
  context_.environment.log.info("%s reads no more messages: %s", device.device->name(), why);
  while (!device.connections.empty())
    device.connections.begin()->second->break_off("the device is gone", true);
  context_.waiter.unwatch(device.device->descriptor());
  device.device.reset();
  device.open_at = now() + kOpenAgain;
}

bool VerbsTransport::receive(transport::Turn&) {
  if (reading_ == 0) return false;
  std::array<link::DeviceReadEnd, 16> ends;
  bool any = false;
  for (ReaderDevice& device : devices_) {
    const std::size_t count = device.device != nullptr ? device.device->poll(ends) : 0;
    for (const link::DeviceReadEnd& end : std::span(ends).first(count)) {
      const auto found = device.connections.find(end.queue_pair);
      if (found != device.connections.end()) found->second->piece_over(end.succeeded);
    }
    any |= count != 0;
  }
  return any;
}

/// Ends the queue pairs over which reads are in progress but no piece has arrived for kSilenceMax.
void VerbsTransport::transmit(transport::Turn& turn) {
  if (!turn.now || *turn.now < review_at_) return;
  const Time time = *turn.now;
  review_at_ = time + kReviewInterval;
  std::vector<ReaderConnection*> silent;
  each_connection([&](ReaderConnection& each) {
    if (each.deadline() <= time) silent.push_back(&each);
  });
  for (ReaderConnection* const each : silent) each->break_off("its device does not answer", true);
  for (ReaderDevice& each : devices_) {
    if (each.device != nullptr) review(each, time);
  }
}

void VerbsTransport::review(ReaderDevice& device, Time time) {
  if (!device.device->works()) return give_back(device, kDeviceLost);
  if (time < device.ask_at) return device.device->tidy();
  device.ask_at = time + kDeviceInterval;
  if (!device.device->exists()) give_back(device, kDeviceLost);
}

void VerbsTransport::on_ready(bool) {
  for (ReaderDevice& each : devices_) {
    if (each.device != nullptr && !each.device->works()) give_back(each, kDeviceLost);
  }
}

bool VerbsTransport::prepare_sleep() {
  return std::ranges::all_of(
      devices_, [](const ReaderDevice& each) { return each.device == nullptr || each.device->arm(); });
}

Time VerbsTransport::deadline() const {
  Time next = kNever;
  if (reading_ != 0)
    each_connection([&](const ReaderConnection& each) { next = std::min(next, each.deadline()); });
  return next;
}

}  // namespace cluster::verbs
