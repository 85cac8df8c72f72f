#include "os/packet_link.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/end_of_memory.h"
#include "os/address_trailer.h"
#include "os/descriptor.h"
#include "os/first_hop.h"
#include "os/helper_thread.h"
#include "os/interface_watch.h"
#include "os/neighbour_table.h"
#include "os/packet_headers.h"
#include "os/packet_ring.h"
#include "os/packet_sender.h"
#include "os/ring_group.h"
#include "os/ring_steps.h"
#include "os/udp_bursts.h"
#include "os/udp_link.h"
#include "os/unlisted_peers.h"

namespace cluster::os {
namespace {

// When hundreds of peers begin sessions at once, a crowded process must empty the socket in its few turns. The
// headers of one buffer take 164 bytes.
constexpr std::size_t kSocketBuffers = 16;
constexpr unsigned kPollsPerSocketPoll = 64;
constexpr unsigned kSocketPollsAfterTraffic = 256;
constexpr std::size_t kWaitingMax = 256;

bool is_keep_alive(const link::OutFrame& frame) {
  return frame.pieces[0].size() >= sizeof(wire::FrameHeader) &&
         frame.pieces[0][offsetof(wire::FrameHeader, kind)] ==
             static_cast<std::byte>(wire::FrameKind::keep_alive);
}

/// A copy of a frame, for at most one frame of each destination.
struct FirstFrame {
  link::Path path;
  std::vector<std::byte> bytes;
};

class PacketLink final : public link::Link {
 public:
  PacketLink(std::shared_ptr<UdpPort> port, const Interface& interface, std::unique_ptr<PacketRing> ring,
             std::unique_ptr<PacketRing> ethertype_ring, std::unique_ptr<PacketSender> sender,
             std::vector<SocketAddress> own, NeighbourTable::Overflows overflows,
             const Environment& environment)
      : port_(std::move(port)),
        interface_(port_->name(), interface.index, environment.log),
        frame_max_opened_(frame_max_within(interface.mtu, port_->name().family())),
        frame_max_(frame_max_opened_),
        ring_(std::move(ring)),
        ethertype_ring_(std::move(ethertype_ring)),
        sender_(std::move(sender)),
        own_(std::move(own)),
        mac_(interface.mac),
        index_(interface.index),
        counters_(environment.counters),
        log_(environment.log),
        neighbours_(port_->name().family(), environment.log, overflows),
        aside_(port_, environment),
        socket_receiver_(port_, port_->socket(), kSocketBuffers, UdpReceiver::Timestamps::no, environment) {}
  const char* name() const override { return "packet"; }
  std::size_t frame_max() const override { return frame_max_; }
  bool has_carrier() const override { return interface_.has_carrier(); }
  bool has_ethertype_path() const override { return ethertype_ring_ != nullptr; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override;
  std::size_t receive_burst(std::span<link::InFrame> frames) override;
  std::size_t read_path_errors(std::span<link::PathError> path_errors) override {
    ring_->clear_errors();
    if (ethertype_ring_) ethertype_ring_->clear_errors();
    return port_->read_path_errors(path_errors);
  }
  std::vector<int> descriptors() const override {
    std::vector<int> all{ring_->descriptor(), port_->socket()};
    if (ethertype_ring_) all.push_back(ethertype_ring_->descriptor());
    return with_descriptor(std::move(all), interface_);
  }
  void on_move(const MoveHandler& handler) override { moved_ = handler; }
  void thin(const link::Thinning& thinning) override {
    const link::Thinning in_effect = port_->thin(thinning);
    aside_.begin_or_end(in_effect);
    ring_->thin(in_effect);
    if (ethertype_ring_) ethertype_ring_->thin(in_effect);
  }
  void before_sleep() override {
    socket_polls_left_ = std::max(socket_polls_left_, 1u);
    aside_.before_sleep();
  }

 private:
  /// Returns true if this link sends frames on this path as raw Ethernet frames, and not through the UDP
  /// socket.
  bool raw(const link::Path& path) {
    return path.mac_known && !own(path.to) && (path.ethertype || leads_to(path));
  }
  /// Returns true if frames to the hardware address of the path reach the peer, as far as the routes tell.
  bool leads_to(const link::Path& path) {
    SystemClock clock;
    return interface_.in_network(path.to) || path.to.multicast() ||
           first_hops_.agrees(clock, path, static_cast<std::uint32_t>(index_));
  }
  bool own(const SocketAddress& name) const { return has_host(own_, name); }
  bool avoids_table(const link::Path& path);
  std::size_t send_through_socket(std::span<const link::OutFrame> frames);
  std::size_t send_without_table(std::span<const link::OutFrame> frames);
  void wait(const link::OutFrame& frame);
  void send_waiting();
  void note_shown(std::span<link::InFrame> frames);
  std::size_t receive_rings(std::span<link::InFrame> frames);
  std::size_t receive_rings_and_socket(std::span<link::InFrame> frames, bool due);
  bool socket_is_due();
  void renew();
  void apply(const Interface& now, bool moved);
  bool readdress_rings();

  std::shared_ptr<UdpPort> port_;
  WatchedInterface interface_;
  std::size_t frame_max_opened_;
  std::size_t frame_max_;
  std::unique_ptr<PacketRing> ring_;
  std::unique_ptr<PacketRing> ethertype_ring_;  ///< null if there is none
  std::unique_ptr<PacketSender> sender_;
  std::vector<SocketAddress> own_;
  HardwareAddress mac_;       ///< of the interface
  int index_;                 ///< of the interface
  bool rings_follow_ = true;  ///< the rings receive the frames to the address of the port
  int without_ring_ = 0;      ///< index of the interface whose frames the socket receives, or 0
  Counters& counters_;
  Log& log_;
  /// Null until a frame first leaves through the socket, because the sender's buffers take 20 KB.
  std::unique_ptr<UdpSender> socket_sender_;
  NeighbourTable neighbours_;
  UnlistedPeers unlisted_;
  FirstHops first_hops_;
  /// Frames with which sessions begin. They wait until UnlistedPeers lets them go to all hosts.
  std::deque<FirstFrame> waiting_;
  AsideReceiver aside_;
  UdpReceiver socket_receiver_;
  /// How many of the next receive_burst() calls also poll the socket.
  unsigned socket_polls_left_ = kSocketPollsAfterTraffic;
  /// Number of receive_burst() calls since the socket was last polled.
  unsigned polls_since_socket_ = 0;
  MoveHandler moved_;
};

std::size_t PacketLink::send_burst(std::span<const link::OutFrame> frames) {
  if (frames.size() == 1) {
    if (const std::optional<std::size_t> taken = sender_->send_on_kept_path(frames[0])) return *taken;
  }
  std::size_t sent = 0;
  while (sent < frames.size()) {
    const bool raw_now = raw(*frames[sent].path);
    std::size_t end = sent + 1;
    while (end < frames.size() &&
           (frames[end].path == frames[sent].path || (raw_now && raw(*frames[end].path)))) {
      ++end;
    }
    const auto run = frames.subspan(sent, end - sent);
    const std::size_t taken = raw_now                            ? sender_->send(run)
                              : avoids_table(*frames[sent].path) ? send_without_table(run)
                                                                 : send_through_socket(run);
    sent += taken;
    if (taken < run.size()) break;
  }
  return sent;
}

/// Returns true if frames on this path do not ask the kernel for the hardware address. If the peer has shown
/// its hardware address in an AddressTrailer, the table of its kernel is full. Such a kernel does not answer
/// the question for its address. But any host can forge a trailer, so every second frame asks the kernel as
/// long as this table has space. If the table of this kernel was full, each further refusal would cost a walk
/// through the table. Or the kernel may have taken the last frame without being able to send it: it waits for
/// the answer of a kernel whose table is full.
bool PacketLink::avoids_table(const link::Path& path) {
  if ((unlisted_.empty() && path.doubts == 0) || own(path.to)) [[likely]]
    return false;
  const Time now = SystemClock().now();
  if (unlisted_.find(path.to, now - UnlistedPeers::kShownFor) != nullptr)
    return neighbours_.was_full(now) || unlisted_.takes_turn(path.to);
  const bool again = path.doubts != 0 || unlisted_.contains(path.to);
  return again && neighbours_.was_full(now) &&
         (path.mac != link::Path{}.mac || interface_.in_network(path.to));
}

/// If there is no memory for the sender, takes no frame, as if the link were full.
std::size_t PacketLink::send_through_socket(std::span<const link::OutFrame> frames) {
  interface_.ask_for_doubtful(frames);
  if (socket_sender_ == nullptr &&
      !enough_memory_for([&] { socket_sender_ = std::make_unique<UdpSender>(port_, counters_); })) {
    return 0;
  }
  const std::size_t sent = socket_sender_->send(frames);
  if (!socket_sender_->take_no_buffer() || !neighbours_.is_full(SystemClock().now())) return sent;
  socket_sender_->forget_refused();
  return sent + send_without_table(frames.subspan(sent));
}

/// Called if the kernel's neighbour table is full. Sends each frame to the last known hardware address of the
/// peer, or to that in its last AddressTrailer. If no address is known, the frame goes to all hosts of the
/// network, and only the peer accepts it. The frame shows the hardware address of this host, and the answer
/// shows that of the peer. A frame that UnlistedPeers does not allow yet waits or is lost. It counts as sent.
/// Keep-alives are lost, because the kernel of the peer cannot send the answer.
/// After several timeouts, a peer may have another network card. Therefore, at some numbers of timeouts
/// (asks_all()), a frame to a known hardware address goes to all hosts instead.
std::size_t PacketLink::send_without_table(std::span<const link::OutFrame> frames) {
  const Time now = SystemClock().now();
  std::size_t sent = 0;
  for (link::OutFrame frame : frames) {
    if (own(frame.path->to)) break;
    link::Path path = link::ip_path(*frame.path);
    path.mac_known = true;
    const HardwareAddress* const shown = unlisted_.find(path.to, Time{});
    if (path.mac == link::Path{}.mac && shown != nullptr) path.mac = *shown;
    const bool known = path.mac != link::Path{}.mac;
    if (!known && is_keep_alive(frame)) {
      ++sent;
      continue;
    }
    if (!known || WatchedInterface::asks_all(path)) {
      using Verdict = UnlistedPeers::Verdict;
      const Verdict verdict = path.to.multicast() ? Verdict::now : unlisted_.ask_all(now, path.to);
      if (verdict == Verdict::now) {
        path.mac = kAllHosts;
      } else if (!known) {
        if (verdict == Verdict::later) wait(frame);
        ++sent;
        continue;
      }
    }
    const wire::AddressTrailer trailer = address_trailer(mac_);
    if (shows_address(frame)) frame.add(as_bytes(&trailer, sizeof trailer));
    frame.path = &path;
    if (sender_->send({&frame, 1}) == 0) break;
    ++sent;
  }
  return sent;
}

/// Retransmission may be seconds away on a crowded node. So frames that may not leave yet wait here, if they
/// are those with which sessions begin. Others follow only after an answer.
void PacketLink::wait(const link::OutFrame& frame) {
  const auto to_same = [&](const FirstFrame& each) { return each.path.to == frame.path->to; };
  if (waiting_.size() == kWaitingMax || !shows_address(frame) || std::ranges::any_of(waiting_, to_same))
    return;
  enough_memory_for([&] {
    FirstFrame first{*frame.path, {}};
    first.bytes.reserve(frame.size);
    for (const ConstBytes piece : std::span(frame.pieces).first(frame.count))
      first.bytes.insert(first.bytes.end(), piece.begin(), piece.end());
    waiting_.push_back(std::move(first));
  });
}

/// Sends the first waiting frame, if UnlistedPeers allows that now.
void PacketLink::send_waiting() {
  if (!unlisted_.allows(SystemClock().now())) return;
  const FirstFrame first = std::move(waiting_.front());
  waiting_.pop_front();
  link::OutFrame frame;
  frame.path = &first.path;
  frame.add(first.bytes);
  send_without_table({&frame, 1});
}

void PacketLink::renew() {
  std::optional<Interface> now = interface_.renew();
  const bool moved = readdress(*port_, interface_, log_);
  if (moved) now = interface_.renew();
  if (now && now->has_ethernet) apply(*now, moved);
  if (moved && moved_) moved_(0, port_->name());
}

bool PacketLink::readdress_rings() {
  const bool main = ring_->readdress(port_->name());
  const bool ethertype = !ethertype_ring_ || ethertype_ring_->readdress(port_->name());
  ring_->thin(port_->thinning());
  if (ethertype_ring_) ethertype_ring_->thin(port_->thinning());
  return main && ethertype;
}

void PacketLink::apply(const Interface& now, bool moved) {
  own_ = interface_.addresses();
  mac_ = now.mac;
  index_ = now.index;
  first_hops_.forget();
  ring_->forget_source();
  if (ethertype_ring_) ethertype_ring_->forget_source();
  const SocketAddress::Family family = port_->name().family();
  frame_max_ = frame_max_renewed(frame_max_opened_, now.mtu, family);
  sender_->renew(now.index, {now.mac, port_->name()}, frame_max_within(now.mtu, family));
  port_->move_to(now.index);
  const bool ring_moved = ring_->move_to(now.index);
  const bool both_moved = (!ethertype_ring_ || ethertype_ring_->move_to(now.index)) && ring_moved;
  if (moved) rings_follow_ = readdress_rings();
  const bool all_arrive = both_moved && rings_follow_;
  port_->ignore_interface(all_arrive ? now.index : 0);
  if (!all_arrive && now.index != without_ring_) {
    log_.info(
        "frames to %s on %s arrive through the UDP socket, because a receive ring does not receive at "
        "the new interface or address",
        port_->name().text().c_str(), now.name.c_str());
  }
  without_ring_ = all_arrive ? 0 : now.index;
}

bool PacketLink::socket_is_due() {
  if (socket_polls_left_ > 0) {
    --socket_polls_left_;
    return true;
  }
  return ++polls_since_socket_ >= kPollsPerSocketPoll;
}

inline std::size_t PacketLink::receive_rings(std::span<link::InFrame> frames) {
  if (!ethertype_ring_) return ring_->receive(frames, own_);
  const bool both = !ring_->idle();
  // If a frame waits in the IP ring, frames of the EtherType ring get at most three quarters of the space.
  const std::size_t most = both ? frames.size() - frames.size() / 4 : frames.size();
  const std::size_t small = ethertype_ring_->idle() ? 0 : ethertype_ring_->receive(frames.first(most), own_);
  return both ? small + ring_->receive(frames.subspan(small), own_) : small;
}

std::size_t PacketLink::receive_burst(std::span<link::InFrame> frames) {
  if (interface_.changed()) [[unlikely]]
    renew();
  const bool due = socket_is_due();
  if (!due && aside_.idle()) [[likely]]
    return receive_rings(frames);
  // Leaves at least half of the space for frames from the rings and from the main socket.
  const std::size_t aside = aside_.receive(frames.first(frames.size() / 2));
  note_shown(frames.first(aside));
  return aside + receive_rings_and_socket(frames.subspan(aside), due);
}

std::size_t PacketLink::receive_rings_and_socket(std::span<link::InFrame> frames, bool due) {
  if (!waiting_.empty()) [[unlikely]]
    send_waiting();
  // Reserves a quarter of the space for the socket when its poll is due, even if the rings are never empty.
  const std::size_t reserved = due ? frames.size() / 4 : 0;
  const std::size_t count = receive_rings(frames.first(frames.size() - reserved));
  if (!due || count == frames.size()) return count;
  polls_since_socket_ = 0;
  const std::size_t more = socket_receiver_.receive(frames.subspan(count));
  if (more != 0) socket_polls_left_ = kSocketPollsAfterTraffic;
  note_shown(frames.subspan(count, more));
  return count + more;
}

/// Notes the hardware addresses behind frames from sockets. Removes them from the paths of the frames,
/// because nothing has proved them.
void PacketLink::note_shown(std::span<link::InFrame> frames) {
  for (link::InFrame& frame : frames) {
    if (frame.from.mac == link::Path{}.mac) [[likely]]
      continue;
    unlisted_.note(SystemClock().now(), frame.from.to, frame.from.mac);
    frame.from.mac = {};
  }
}

/// Returns why this link cannot use the interface, and what the user can do about it. Returns an empty text
/// if the link can use the interface.
std::string why_unsuitable(const SocketAddress& name, const Interface& interface) {
  const std::string what = "packet link on " + interface.name + ": ";
  if (interface.loopback) return what + "loopback carries no Ethernet frames; use the udp link";
  if (!interface.has_ethernet) return what + "not an Ethernet interface; name another in FI_CLUSTER_IFACE";
  if (!interface.up)
    return what + "the interface is down; bring it up (\"ip link set " + interface.name + " up\")";
  if (!has_host(interface.addresses, name)) {
    return what + "the endpoint's address " + name.ip_text() +
           " does not belong to this interface; bind the endpoint to an address of the interface";
  }
  return {};
}

std::string explain(const Interface& interface, int error) {
  const std::string what = "packet link on " + interface.name + ": ";
  switch (error) {
    case EPERM:
    case EACCES:
      return what +
             "raw sockets need CAP_NET_RAW; run as root or grant the capability (\"setcap cap_net_raw+ep "
             "PROGRAM\")";
    case ENOMEM: return what + "no memory for the receive ring; free some memory";
    case EAFNOSUPPORT: return what + "the kernel has no packet sockets (CONFIG_PACKET)";
    default: return what + error_text(error);
  }
}

std::vector<SocketAddress> own_addresses() {
  std::vector<SocketAddress> own;
  for (const Interface& interface : list_interfaces()) {
    own.insert(own.end(), interface.addresses.begin(), interface.addresses.end());
  }
  return own;
}

bool has_single_receive_queue(const Interface& interface) {
  const bool queues_are_its_own =
      interface.kind == Interface::Kind::physical || interface.kind == Interface::Kind::veth;
  return queues_are_its_own && receive_queues(interface.name) == 1;
}

/// Opens the rings of a link in the first group of this user and interface that has a place. If no group has
/// a place, or if the group does not work, opens the rings outside any group, provided that the settings
/// allow it.
class PacketRings {
 public:
  PacketRings(const SocketAddress& name, const Interface& interface, const PacketSettings& settings,
              const Environment& environment)
      : name_(name), interface_(interface), settings_(settings), environment_(environment) {}

  std::unique_ptr<PacketRing> open_main() {
    return open(RingShape::of_super_frames(name_.family(), settings_.ring_slots));
  }
  std::unique_ptr<PacketRing> open_ethertype() {
    std::unique_ptr<PacketRing> ring;
    if (!enough_memory_for([&] { ring = open(RingShape::of_small_frames(settings_.ring_slots)); }))
      failure_.error = ENOMEM;
    return ring;
  }
  /// Warns that the link works without the ring for EtherType 0x88b5.
  void warn_of_missing_ethertype() const;
  int error() const { return failure_.error; }
  std::shared_ptr<const RingTable> group() const { return group_ ? group_->shared_table() : nullptr; }
  /// Returns why the ring is in no group.
  std::string why() const { return interface_.name + ": " + failure_.group; }

 private:
  std::unique_ptr<PacketRing> open(const RingShape& shape);
  std::unique_ptr<PacketRing> attempt(const RingShape& shape);

  const SocketAddress& name_;
  const Interface& interface_;
  const PacketSettings& settings_;
  const Environment& environment_;
  RingFailure failure_;
  std::shared_ptr<RingGroup> group_;  ///< null if the ring is outside any group
};

std::unique_ptr<PacketRing> PacketRings::attempt(const RingShape& shape) {
  return PacketRing::open(interface_.index, name_, shape, group_, settings_.rings, environment_, failure_);
}

std::unique_ptr<PacketRing> PacketRings::open(const RingShape& shape) {
  std::unique_ptr<PacketRing> ring;
  failure_.group = kGroupIsFull;
  for (unsigned number = 0; number < settings_.ring_groups && failure_.group == kGroupIsFull; ++number) {
    group_ = RingGroup::of_interface(interface_.index, number, failure_.group);
    if (group_ != nullptr) ring = attempt(shape);
    if (ring != nullptr || failure_.error != 0) return ring;
  }
  group_.reset();
  return settings_.ring_outside_group ? attempt(shape) : nullptr;
}

void PacketRings::warn_of_missing_ethertype() const {
  environment_.log.warn(
      "small frames on %s are sent as IP packets, because the receive ring for EtherType 0x88b5 "
      "cannot be opened: %s (FI_CLUSTER_ETHERTYPE=no suppresses this line)",
      interface_.name.c_str(),
      failure_.error != 0 ? error_text(failure_.error).c_str() : failure_.group.c_str());
}

}  // namespace

std::unique_ptr<link::Link> open_packet_link(std::shared_ptr<UdpPort> port, const Interface& interface,
                                             const PacketSettings& settings, const Environment& environment,
                                             std::string& reason, std::shared_ptr<const RingTable>* group) {
  reason = why_unsuitable(port->name(), interface);
  if (!reason.empty()) return nullptr;
  int error = 0;
  const Origin origin{interface.mac, port->name()};
  const bool wants_ethertype = settings.ethertype ? *settings.ethertype : has_single_receive_queue(interface);
  auto sender = PacketSender::open(interface.index, origin,
                                   {settings.qdisc_bypass && !interface.shaped, settings.offload,
                                    wants_ethertype, frame_max_within(interface.mtu, port->name().family())},
                                   environment.counters, error);
  std::unique_ptr<PacketRing> ring;
  std::unique_ptr<PacketRing> ethertype_ring;
  if (sender) {
    PacketRings opener(port->name(), interface, settings, environment);
    const auto ethertype_opener = std::make_unique<PacketRings>(opener);  // on the heap, to save stack
    {
      // Whenever the kernel creates a ring, it waits for RCU grace periods. The helper thread makes the waits
      // for both rings overlap.
      std::optional<HelperThread> meanwhile;
      if (wants_ethertype) meanwhile.emplace([&] { ethertype_ring = ethertype_opener->open_ethertype(); });
      ring = opener.open_main();
    }
    error = opener.error();
    if (group != nullptr) *group = opener.group();
    if (ring == nullptr && error == 0) {
      reason = opener.why() + " (with FI_CLUSTER_LINK=packet, the endpoint opens a receive ring of its own)";
      environment.log.warn("endpoint %s has no receive ring and uses the udp link: %s",
                           port->name().text().c_str(), reason.c_str());
      return nullptr;
    }
    if (ring && wants_ethertype && !ethertype_ring) ethertype_opener->warn_of_missing_ethertype();
  }
  // The socket begins to ignore the interface after the ring is open, so that no frame is lost. Until then, a
  // frame may arrive twice: through the socket and through the ring. Such a duplicate does no harm.
  if (ring && !port->ignore_interface(interface.index)) error = ENOPROTOOPT;
  if (error != 0) {
    reason = explain(interface, error);
    return nullptr;
  }
  return std::make_unique<PacketLink>(std::move(port), interface, std::move(ring), std::move(ethertype_ring),
                                      std::move(sender), own_addresses(), settings.neighbour_overflows,
                                      environment);
}

}  // namespace cluster::os
