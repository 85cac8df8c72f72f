#include "network/network_transport.h"

#include <algorithm>
#include <cstdio>
#include <unordered_set>
#include <utility>

#include "transport/peer_stats.h"

namespace cluster::network {

using transport::OpenResult;
using transport::Turn;

namespace {

/// After this many empty polls, an endpoint with peers on this node polls the network only rarely. A poll
/// costs a cache miss or a system call.
constexpr std::uint32_t kEmptyPolls = 1 << 10;
constexpr std::uint32_t kEmptyPollsAlone = 1 << 5;  ///< the same if no peer is reached over the network

/// A turn that has processed more frames than this reads the clock again before it transmits, because its
/// thread may have lost the processor meanwhile.
constexpr std::size_t kArrivalsFew = 4;

/// For this number of ticks (1 to 4 us) after a full turn, a short turn that finds nothing leads to no full
/// turn. So timers may be late by this time.
constexpr std::uint64_t kTicksPerShortLook = 1 << 12;

bool is_loopback(const SocketAddress& address) {
  const ConstBytes ip = address.ip();
  if (address.family() == SocketAddress::Family::v4) return ip.front() == std::byte{127};
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  return ip.size() == 16 && ip.back() == std::byte{1} && std::all_of(ip.begin(), ip.end() - 1, is_zero);
}

std::string seconds(Duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(time.count()) / 1e9);
  return text;
}

/// Returns each IP address in the address vector once, or nothing if there are more than `most`.
std::vector<SocketAddress> hosts_in(const transport::AddressTable& addresses, std::size_t most) {
  std::unordered_set<SocketAddress, SocketAddressHash> hosts;
  const transport::AddressTable::Handle end = addresses.handles_end();
  for (transport::AddressTable::Handle handle = 0; handle < end; ++handle) {
    const SocketAddress address = addresses.lookup(handle);
    if (address.empty()) continue;
    hosts.insert(address.with_port(0));
    if (hosts.size() > most) return {};
  }
  return {hosts.begin(), hosts.end()};
}

}  // namespace

void MemberHosts::review(const transport::AddressTable& addresses) {
  if (probe_ == nullptr || std::exchange(generation_, addresses.generation()) == addresses.generation())
    return;
  probe_->set_members(hosts_in(addresses, link::ProcessProbe::kHostsMax));
}

NetworkTransport::NetworkTransport(const transport::TransportContext& context,
                                   const NetworkResources& resources)
    : parts_{context.environment, context.settings, context.name,     context.epoch, &resources.link,
             resources.rails,     resources.probe,  resources.roster, *this,         resources.datagrams},
      rails_(resources.rails),
      clock_(context.environment.clock),
      peers_(context.peers),
      messenger_(context.messenger),
      packing_(context.packing),
      waiter_(context.waiter),
      reach_(context.reach),
      tx_(parts_, peers_, messenger_, context.packing, context.outage),
      sessions_(parts_, peers_, messenger_, context.reach, tx_),
      receiver_(parts_, peers_, messenger_, context.admission, tx_, sessions_, context.reach),
      hosts_(resources.probe),
      reach_memory_(resources.reach_memory) {
  const std::vector<int> descriptors = parts_.link->descriptors();
  if (descriptors.empty()) context.waiter.forbid();
  for (const int descriptor : descriptors) context.waiter.watch(descriptor, *this);
  parts_.link->on_move([this](std::uint8_t link, const SocketAddress& now) { on_move(link, now); });
}

/// Called in a turn, after the link has got another address. Announces the new address to all peers, even to
/// idle ones. Otherwise the next message of an idle peer would go to the former address.
///
/// A new queue pair is announced over the other paths, which still work. So the two sides find each other
/// even if both have new queue pairs. Later openings name the new queue pair, too.
void NetworkTransport::on_move(std::uint8_t link, const SocketAddress& address) {
  for (const int descriptor : parts_.link->descriptors()) {
    waiter_.unwatch(descriptor);
    waiter_.watch(descriptor, *this);
  }
  if (address.verbs()) {
    const auto of_verbs = [](const multipath::Rail& rail) { return rail.address.verbs(); };
    rails_[link].address = address;
    return sessions_.announce_queue_pair(
        static_cast<std::size_t>(std::count_if(rails_.begin(), rails_.begin() + link, of_verbs)), address);
  }
  const Time now = clock_.now();
  for (RemotePeer* const remote : tx_.flows()) {
    if (remote->common.failed) continue;
    remote->flow->on_own_move(now, link);
    tx_.mark(*remote);
  }
}

/// Destroys the flows first, because they return their frames to a pool in this object.
NetworkTransport::~NetworkTransport() {
  for (const std::unique_ptr<Peer>& peer : peers_.all()) peer->parts[slot()].reset();
}

const char* NetworkTransport::name_for(const Peer& peer) const {
  const RemotePeer* const remote = parts_.find(peer);
  return remote != nullptr && remote->flow != nullptr && remote->flow->paths().has_queue_pair() ? "verbs"
                                                                                                : name();
}

OpenResult NetworkTransport::open(Peer& peer, std::string& reason) {
  Log& log = parts_.environment.log;
  if (is_loopback(peer.name()) && !is_loopback(parts_.name) && !std::exchange(logged_loopback_, true)) {
    log.warn(
        "peer %s has a loopback address, which endpoint %s probably cannot reach (check FI_CLUSTER_IFACE on "
        "the peer's node)",
        peer.name().text().c_str(), parts_.name.text().c_str());
  }
  sessions_.open(parts_.of(peer), parts_.path_to(peer.name()));
  log.info("peer %s is reached over the %s link: %s", peer.name().text().c_str(), name(), reason.c_str());
  return OpenResult::reached;
}

/// Begins a session with the peer, and sends this side's opening and credit. The session is the peer's
/// carrier only while this function runs.
bool NetworkTransport::look_for(Peer& peer) {
  if (asking(peer)) return false;
  RemotePeer& remote = parts_.of(peer);
  sessions_.begin(remote, parts_.path_to(peer.name()));
  peer.channel.carrier = &remote.flow->queue();
  messenger_.remind(peer.channel);
  peer.channel.carrier = nullptr;
  tx_.mark(remote);
  return false;
}

std::unique_ptr<carrier::MemoryAccess> NetworkTransport::reach_memory(Peer& peer) {
  return reach_memory_ ? reach_memory_(peer.name()) : nullptr;
}

bool NetworkTransport::asking(const Peer& peer) const {
  const RemotePeer* const remote = parts_.find(peer);
  return remote != nullptr && remote->flow != nullptr && !remote->half_open();
}

void NetworkTransport::close(Peer& peer) {
  RemotePeer* const remote = parts_.find(peer);
  if (remote == nullptr) return;
  receiver_.budget().release(*remote);
  sessions_.close(*remote);
}

void NetworkTransport::after_close(Peer& peer) {
  if (RemotePeer* const remote = parts_.find(peer)) sessions_.promote_pending(*remote);
}

void NetworkTransport::say_goodbye(Peer& peer) {
  RemotePeer* const remote = parts_.find(peer);
  if (remote != nullptr && remote->flow != nullptr) remote->flow->close(clock_.now(), *parts_.link);
}

bool NetworkTransport::holds(const Peer& peer) const {
  const RemotePeer* const remote = parts_.find(peer);
  return remote != nullptr && (remote->flow != nullptr || remote->pending.flow != nullptr);
}

bool NetworkTransport::has_met(const Peer& peer) const { return asking(peer); }

bool NetworkTransport::vouches_for(Peer& peer) {
  RemotePeer* const remote = parts_.find(peer);
  if (remote == nullptr) return false;
  const bool by_sibling = remote->sibling.claim == RemotePeer::Sibling::Claim::confirmed &&
                          peers_.is_member_name(remote->sibling.name);
  return by_sibling || is_member_by_alias(*remote);
}

bool NetworkTransport::vouches_for_name(const SocketAddress& name) {
  const RemotePeer* const remote = parts_.find(peers_.find(name));
  return remote != nullptr && is_member_by_alias(*remote);
}

/// Returns true if the address vector contains the peer under another of its addresses.
bool NetworkTransport::is_member_by_alias(const RemotePeer& remote) const {
  if (!remote.common.has_aliases || remote.flow == nullptr) return false;
  return std::ranges::any_of(remote.flow->paths().validated_addresses(), [&](const SocketAddress& address) {
    return peers_.is_alias(address, remote.common) && peers_.in_address_vector(address);
  });
}

bool NetworkTransport::succeeds(Peer& peer, std::uint64_t epoch) {
  RemotePeer* const remote = parts_.find(peer);
  if (remote == nullptr || remote->flow == nullptr) return false;
  const reliability::Handshake& handshake = remote->flow->handshake();
  if (handshake.knows_peer() && epoch > handshake.peer_epoch()) return true;
  remote->flow->liveness().forget_path_errors();
  return false;
}

std::string NetworkTransport::loss_detail(const Peer& peer, Status status) const {
  const RemotePeer* const remote = parts_.find(peer);
  const EngineSettings& settings = parts_.settings;
  if (status == Status::stuck)
    return ", no answer for " + seconds(settings.stuck_timeout) + " (FI_CLUSTER_STUCK_TIMEOUT)";
  if (remote == nullptr || remote->flow == nullptr) return {};
  if (status == Status::refused && remote->flow->liveness().kernel_vouches())
    return ", although the peer's TCP port is open, so a firewall may refuse UDP";
  if (status == Status::refused && parts_.name.same_host(peer.name()))
    return ", and this node has the peer's address itself (if the peer is on another node, name another "
           "interface in FI_CLUSTER_IFACE)";
  if (status != Status::unreachable) return {};
  const Duration silence = remote->flow->liveness().silent_for();
  if (silence < settings.peer_timeout) return {};
  return ", no answer for " + seconds(silence) + " (FI_CLUSTER_PEER_TIMEOUT)";
}

const char* NetworkTransport::advice(Status status) const {
  if (status == Status::stuck)
    return " (\"cluster-info --why\" on the peer's node shows what the peer is doing)";
  if (status == Status::prohibited)
    return " (\"cluster-info --ports\" prints what the firewalls between the nodes must let pass)";
  if (status == Status::translated)
    return " (set FI_CLUSTER_KEY_FILE on all nodes of the job: with a key, translated addresses work; or "
           "connect the nodes by a route without translation, or by a tunnel whose interface "
           "FI_CLUSTER_IFACE names)";
  if (status != Status::unreachable) return "";
  return " (is the peer's node off, is a cable unplugged, or does a firewall drop UDP?)";
}

void NetworkTransport::report(const Peer& peer, transport::PeerStats& stats) const {
  const RemotePeer* const remote = parts_.find(peer);
  if (remote == nullptr) return;
  stats.footprint += sizeof *remote;
  if (remote->flow != nullptr) {
    remote->flow->settle();
    stats.flow = remote->flow->stats();
    for (multipath::PathStats& path : stats.flow->paths) path.relay = parts_.link->relay_to(path.to);
    stats.footprint += stats.flow->footprint;
  }
  if (remote->pending.flow != nullptr) stats.footprint += remote->pending.flow->stats().footprint;
}

/// Returns the peer if a segment of `size` bytes may take the frame lane now, else null. While messages share
/// frames (transport/packing_policy.h), a message that is not the only one in flight takes the general path.
/// While a thread may sleep, every message takes the general path, because that path sets the alarm.
[[gnu::always_inline]] inline RemotePeer* NetworkTransport::by_lane(Peer& peer, std::size_t size) {
  RemotePeer* const remote = parts_.find(peer);
  if (remote == nullptr || !remote->carries() || peer.failed || waiter_.may_sleep()) return nullptr;
  reliability::Flow& flow = *remote->flow;
  if (!flow.lane().accepts(size)) return nullptr;
  if (flow.queue().window().outstanding() != 0) {
    if (packing_.in_stream()) return nullptr;
    packing_.may_wait();
  }
  return remote;
}

/// Sends the frame that was just queued alone.
void NetworkTransport::leave(RemotePeer& remote) {
  bool left = false;
  peers_.serve(remote.common, [&] {
    tx_.note_use(remote);
    left = remote.flow->lane().send(clock_.now(), *parts_.link);
  });
  if (!left) tx_.mark(remote);
}

bool NetworkTransport::send_short(Peer& peer, const protocol::ShortSend& message) {
  RemotePeer* const remote = by_lane(peer, message.header.size() + message.header.length);
  if (remote == nullptr) return false;
  bool queued = false;
  const auto post = [&](carrier::Token token) {
    return remote->flow->queue().post_alone(message.header, message.payload, token);
  };
  const auto send = [&] { queued = receiver_.short_messages().send(remote->channel, message, post); };
  if (!enough_memory_for(send) || !queued) return false;
  leave(*remote);
  return true;
}

bool NetworkTransport::write_short(Peer& peer, const protocol::WriteOp& op) {
  const bool plain = op.remote.size() == 1 && op.slices.size() == 1 && !op.has_data && !op.fence && !op.more;
  if (!plain || op.length > protocol::ShortWrite::kBytesMax) return false;
  RemotePeer* const remote = by_lane(peer, wire::WriteHeader::size() + op.length);
  if (remote == nullptr) return false;
  reach_.reach_memory(peer);
  bool queued = false;
  const auto post = [&](const wire::WriteHeader& header) {
    return remote->flow->queue().post_alone(header, op.slices[0].data());
  };
  const auto send = [&] { queued = receiver_.short_writes().send(remote->channel, op, post); };
  if (!enough_memory_for(send) || !queued) return false;
  leave(*remote);
  return true;
}

bool NetworkTransport::receive_short(protocol::DirectSuccesses& direct) {
  using Look = NetworkReceiver::Look;
  const Look look = receiver_.receive_short(direct);
  if (look == Look::left) return false;
  const bool quiet = !tx_.urgent() && peers_.failed().empty();
  if (look == Look::taken) return quiet;
  const bool over = quiet && !tx_.tx_pending() && clock_.ticks() - turned_at_ <= kTicksPerShortLook;
  if (!over) receiver_.found_nothing();
  return over;
}

/// Returns true if three conditions are true. Many polls in a row have found nothing. No peer on another node
/// can wait for this endpoint. This endpoint waits for no peer on another node.
bool NetworkTransport::may_be_skipped() const {
  return receiver_.empty_polls() >= (tx_.flows().empty() ? kEmptyPollsAlone : kEmptyPolls) &&
         tx_.next_timer() == kNever && !messenger_.control().pending() && !tx_.tx_pending() &&
         (tx_.flows().empty() || !messenger_.busy());
}

/// Returns true if this turn must poll the network. While the network is silent and rings are in use, most
/// turns need not poll it.
bool NetworkTransport::due(Turn& turn) const {
  if (turn.scope() == transport::PollScope::all || turn.watchful || !turn.cheaper_in_use) return true;
  if (turn.number() % Turn::kTurnsPerFullLook == 0 || !may_be_skipped()) return true;
  const bool posted = messenger_.rma().pending();
  return !turn.hurries() && turn.ticks() - looked_at_ > (posted ? kTicksPerLook : ticks_between_looks());
}

bool NetworkTransport::receive(Turn& turn) {
  arrivals_ = 0;
  if (!due(turn)) return false;
  if (!turn.hurries() && turn.cheaper_in_use) looked_at_ = turn.ticks();
  Time now{};
  arrivals_ = receiver_.receive(now);
  turned_at_ = clock_.ticks();
  if (receiver_.holding()) [[unlikely]]
    receiver_.receive_held(now);
  if (now >= tx_.next_timer() && tx_.run_timers(now)) receiver_.read_path_errors(now, false);
  if (now >= sessions_.next_reminder() && sessions_.reminder_wanted()) {
    sessions_.remind_idle_peers(now);
    hosts_.review(*peers_.attached());
  }
  turn.now = now;
  return arrivals_ != 0;
}

void NetworkTransport::before_pump() {
  for (RemotePeer* const remote : tx_.flows()) {
    if (remote->channel.busy()) tx_.mark(*remote);
  }
}

/// If all arrivals have taken the frame lane, and no flow has other work, a later turn settles what the lane
/// has left (TxScheduler::note_use).
void NetworkTransport::transmit(Turn& turn) {
  if (!tx_.tx_pending() || (receiver_.only_lone() && !tx_.urgent())) return;
  tx_.transmit(!turn.now || arrivals_ > kArrivalsFew ? clock_.now() : *turn.now);
}

void NetworkTransport::flush() {
  if (tx_.tx_pending()) tx_.transmit(clock_.now());
}

void NetworkTransport::receive_held(std::uint32_t) { receiver_.receive_held(clock_.now()); }

bool NetworkTransport::prepare_sleep() {
  parts_.link->before_sleep();
  return true;
}

Time NetworkTransport::deadline() const {
  if (tx_.unsettled()) return Time{};
  const Time timer = std::min(tx_.next_timer(), receiver_.deadline());
  return sessions_.reminder_wanted() ? std::min(timer, sessions_.next_reminder()) : timer;
}

void NetworkTransport::on_ready(bool trouble) {
  if (trouble) receiver_.read_path_errors(clock_.now(), true);
}

}  // namespace cluster::network
