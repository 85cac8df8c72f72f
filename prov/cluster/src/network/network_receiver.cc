#include "network/network_receiver.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "link/link.h"
#include "wire/admit.h"

namespace cluster::network {
namespace {

constexpr Duration kPathErrorInterval = 5ms;
/// The largest number of bursts that one turn takes from the link.
constexpr std::size_t kBurstsPerTurn = 4;

/// Returns how long our newest frame had waited at the peer when the peer sent this frame, plus how long this
/// frame has waited here. Returns nothing if the peer's delay is unknown.
std::optional<Duration> host_delay(Time now, const wire::FrameView& view, const link::InFrame& frame) {
  if (!view.knows_ack_delay()) return std::nullopt;
  return Duration(view.ack_delay_ns) + (now - std::min(frame.arrived, now));
}

/// Returns the number of frames that the seal has refused. The link drops these frames, so no burst contains
/// them. Frames of groups do not count, because they arrive through other sockets, where the link cannot put
/// frames aside.
std::uint64_t refused_by_seal(const Counters& counters) {
  return counters.refused_malformed + counters.refused_unsealed + counters.refused_forged +
         counters.refused_replayed + counters.refused_stale + counters.keep_alives_ignored -
         counters.refused_multicast;
}

}  // namespace

NetworkReceiver::NetworkReceiver(const NetworkParts& parts, PeerTable& peers, protocol::Messenger& messenger,
                                 transport::AdmissionControl& admission, TxScheduler& tx,
                                 SessionTable& sessions, PeerReach& reach)
    : parts_(parts),
      peers_(peers),
      messenger_(messenger),
      arrivals_(messenger, peers, admission),
      budget_(parts, peers),
      tx_(tx),
      sessions_(sessions),
      flood_(parts.link, sessions.secrets().member_mark()),
      answers_(parts, peers),
      acceptor_(parts, peers, admission, tx, sessions, reach, answers_),
      integrity_(parts.link->integrity()),
      short_messages_(messenger),
      short_writes_(messenger) {
  if (parts.datagrams) datagrams_.emplace(parts, peers, messenger, answers_);
}

/// Reads at most kBurstsPerTurn bursts. A burst that does not fill the array is the last one, because the
/// link then has no more frames. With a key, the seal may have refused some frames of a burst. So the refused
/// frames count as part of the burst.
std::size_t NetworkReceiver::receive(Time& now) {
  const bool sealed = integrity_ == wire::Integrity::seal;
  std::size_t arrivals = 0;
  only_lone_ = true;
  for (std::size_t burst = 0; burst < kBurstsPerTurn; ++burst) {
    const std::uint64_t refused = sealed ? refused_by_seal(parts_.environment.counters) : 0;
    const std::span<const link::InFrame> frames = next_burst();
    const std::size_t count = frames.size();
    const std::size_t ended = sealed ? refused_by_seal(parts_.environment.counters) - refused : 0;
    now = parts_.environment.clock.now();
    empty_polls_ = count > 0 ? 0 : empty_polls_ + 1;
    for (const link::InFrame& frame : frames) {
      protocol::DirectSuccesses no_reader;
      const bool lone = take_lone(now, frame, no_reader);
      only_lone_ &= lone;
      arrivals += lone ? 1 : receive_from(now, frame);
    }
    if (count + ended < frames_.size()) break;
  }
  only_lone_ &= arrivals != 0;
  watch(now);
  return arrivals;
}

/// Does the work of receive_short() after the link has delivered frames. It is apart, because most looks find
/// nothing, and should save no registers for this work.
NetworkReceiver::Look NetworkReceiver::take_burst(std::span<const link::InFrame> frames,
                                                  protocol::DirectSuccesses& direct) {
  empty_polls_ = 0;
  const Time now = parts_.environment.clock.now();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (take_lone(now, frames[i], direct)) continue;
    left_ = frames.subspan(i);
    return Look::left;
  }
  return Look::taken;
}

/// Processes an arrival if it is a single frame that can take the frame lane. Otherwise changes nothing and
/// returns false.
bool NetworkReceiver::take_lone(Time now, const link::InFrame& frame, protocol::DirectSuccesses& direct) {
  const std::uint32_t session = wire::session_of_lone(frame.bytes);
  RemotePeer* const peer = session != 0 && frame.segment == 0 ? sessions_.find(session) : nullptr;
  if (peer == nullptr || peer->flow == nullptr || !peer->flow->lane().open() || peer->common.failed)
    return false;
  wire::LoneFrame lone;
  if (!wire::admit_lone(frame.bytes, lone)) return false;
  bool taken = false;
  peers_.serve(peer->common, [&] { taken = take_lone(now, *peer, lone, frame, direct); });
  return taken || peer->common.failed;
}

/// Records the arrival of a lone frame. Returns true if the peer needs an acknowledgement at once.
[[gnu::always_inline]] inline bool NetworkReceiver::arrive(Time now, RemotePeer& peer,
                                                           const wire::LoneFrame& lone,
                                                           const link::InFrame& frame) {
  tx_.note_use(peer);
  const bool ack_due = peer.flow->lane().take(now, lone, frame.from, frame.arrived);
  peer.heard_at = now;
  ++parts_.environment.counters.frames_received;
  return ack_due;
}

inline bool NetworkReceiver::take_lone(Time now, RemotePeer& peer, const wire::LoneFrame& lone,
                                       const link::InFrame& frame, protocol::DirectSuccesses& direct) {
  const bool accounted = peer.held != 0 || peer.common.handle.value == protocol::kAddrNotAvail;
  if (accounted || peer.sibling.claim == RemotePeer::Sibling::Claim::made ||
      !peer.flow->lane().predicts(lone, frame.from)) {
    return false;
  }
  if (!lone.only_message()) [[unlikely]]
    return take_access(now, peer, lone, frame, direct);
  protocol::RecvRequest* const receive = short_messages_.receive_for(peer.channel, lone.message);
  if (receive == nullptr || !short_messages_.charge(peer.channel, lone.message)) return false;
  const bool ack_due = arrive(now, peer, lone, frame);
  direct.report(*short_messages_.rx_queue(),
                short_messages_.deliver(peer.channel, *receive, lone.message, lone.payload));
  tx_.complete_acked(peer, direct);
  if (ack_due) tx_.mark(peer);
  return true;
}

/// Processes the expected frame if it contains a write, an answer, or an answer before a message or a write.
/// Until the function has checked all conditions, it changes nothing. The last condition is that the write
/// succeeds.
[[gnu::noinline]] bool NetworkReceiver::take_access(Time now, RemotePeer& peer, const wire::LoneFrame& lone,
                                                    const link::InFrame& frame,
                                                    protocol::DirectSuccesses& direct) {
  using Content = wire::LoneFrame::Content;
  reliability::FrameLane& lane = peer.flow->lane();
  protocol::WriteRequest* const answered =
      lone.answers ? short_writes_.answered(peer.channel, lone.answer.id) : nullptr;
  if (lone.answers && answered == nullptr) return false;
  protocol::RecvRequest* receive = nullptr;
  const bool writes = lone.content == Content::write;
  if (writes) {
    if (!lane.answers() || !short_writes_.execute(peer.channel, lone.write, lone.payload)) return false;
  } else if (lone.content == Content::message) {
    receive = short_messages_.receive_for(peer.channel, lone.message);
    if (receive == nullptr || !short_messages_.charge(peer.channel, lone.message)) return false;
  }
  bool turn_due = arrive(now, peer, lone, frame);
  if (answered != nullptr) short_writes_.complete(*answered, direct);
  if (receive != nullptr) {
    direct.report(*short_messages_.rx_queue(),
                  short_messages_.deliver(peer.channel, *receive, lone.message, lone.payload));
  }
  if (writes) {
    if (peer.flow->queue().post_answer({lone.write.id})) {
      turn_due = !lane.answer(now, *parts_.link, turn_due);
    } else {
      short_writes_.answer(peer.channel, lone.write.id);
      turn_due = true;
    }
  }
  tx_.complete_acked(peer, direct);
  if (turn_due) tx_.mark(peer);
  return true;
}

/// Checks for a flood of frames that are refused or belong to no session (FloodWatch). With a key, the sealed
/// link drops bad frames itself, so this class learns only how many there were. A datagram endpoint cannot
/// detect a flood, because none of its frames belong to a session.
inline void NetworkReceiver::watch(Time now) {
  if (datagrams_) return;
  if (integrity_ == wire::Integrity::seal)
    flood_.note_total(now, refused_by_seal(parts_.environment.counters));
  if (flood_.review(now)) [[unlikely]]
    flood_.pass(sessions_.members_without_mark());
  if (flood_.flood()) [[unlikely]]
    answers_.note_flood(now);
}

/// Processes the frames of one arrival and returns their number. If admit() refuses a frame, this function
/// also drops the rest of the frame's datagram.
std::size_t NetworkReceiver::receive_from(Time now, const link::InFrame& frame) {
  Counters& counters = parts_.environment.counters;
  std::size_t arrivals = 0;
  std::size_t singly = 0;  // remaining frames of a run that no flow takes as a whole
  for (link::ArrivalWalk walk(frame); !walk.done();) {
    wire::FrameView view;
    const wire::Refusal refusal = wire::admit(walk.datagram(), view, integrity_);
    if (refusal != wire::Refusal::none) [[unlikely]] {
      refuse(now, refusal, frame);
      walk.pass_datagram();
      ++arrivals;
      continue;
    }
    std::size_t count = 1;
    RemotePeer* taker = nullptr;  // the peer whose flow takes the whole run, or null
    wire::RunView run;
    const ConstBytes alike = walk.run(view.length);
    const bool alone = singly != 0 || alike.size() < 2 * view.length;
    if (!alone && wire::match_run(alike, view, run)) {
      taker = taker_of_run(view, run, frame);
      if (taker == nullptr) {
        singly = run.count;
      } else if (check(run, *taker)) {
        count = run.count;
      } else {
        taker = nullptr;
      }
    }
    if (singly != 0) --singly;
    if (taker != nullptr) {
      receive_in_flow(now, taker, view, frame, &run);
    } else {
      receive_frame(now, view, frame);
    }
    counters.frames_received += count;
    arrivals += count;
    walk.pass(count, view.length);
  }
  return arrivals;
}

/// Logs the first sealed frame that this process cannot open. Only counts later frames of this kind, because
/// a forger could fill the log.
void NetworkReceiver::refuse(Time now, wire::Refusal refusal, const link::InFrame& frame) {
  Counters& counters = parts_.environment.counters;
  if (integrity_ != wire::Integrity::seal) flood_.note_nonsense(now);
  switch (refusal) {
    case wire::Refusal::checksum: ++counters.refused_checksum; return;
    case wire::Refusal::sealed: ++counters.refused_sealed; break;
    default: ++counters.refused_malformed; return;
  }
  if (std::exchange(sealed_reported_, true)) return;
  parts_.environment.log.warn(
      "authenticated or encrypted frames from %s are dropped: their sender has a key and this process has "
      "none (set FI_CLUSTER_KEY_FILE on all nodes of the job); further such frames are only counted",
      frame.from.to.text().c_str());
}

/// Returns the peer whose flow takes all frames of a run together, or null if they have to be processed one
/// by one.
RemotePeer* NetworkReceiver::taker_of_run(const wire::FrameView& first, const wire::RunView& run,
                                          const link::InFrame& frame) const {
  if (datagrams_ || frame.from.ethertype || first.session == 0) return nullptr;
  RemotePeer* const peer = sessions_.find(first.session);
  const bool takes = peer != nullptr && peer->flow != nullptr &&
                     peer->flow->handshake().session() == first.session &&
                     peer->flow->receiver().takes_run(first, run.count);
  return takes ? peer : nullptr;
}

/// Checks the checksums of a run that the peer's flow takes. If the place of the payloads is known, copies
/// them meanwhile. Returns false if the run has only one right frame.
bool NetworkReceiver::check(wire::RunView& run, const RemotePeer& peer) {
  const bool checked = integrity_ == wire::Integrity::checksum;
  const Bytes place = checked ? messenger_.place_of_run(peer.channel, run) : Bytes{};
  if (!wire::check_run(run, place, integrity_)) return false;
  if (run.stored) parts_.environment.counters.bytes_checked_in_copy += run.size();
  return true;
}

void NetworkReceiver::receive_frame(Time now, const wire::FrameView& view, const link::InFrame& frame) {
  // The host's IP filters see neither EtherType frames nor what a queue pair receives. Therefore this side
  // accepts both only in sessions: the frames that opened a session have passed the IP filters.
  if ((frame.from.ethertype || frame.from.to.verbs()) && view.session == 0) {
    flood_.note_session(now, 0);
    ++parts_.environment.counters.refused_malformed;
    return;
  }
  if (datagrams_) return datagrams_->receive(now, view, frame.from);
  if (view.kind != wire::FrameKind::flow && view.kind != wire::FrameKind::fin)
    flood_.note_session(now, view.session);
  switch (view.kind) {
    case wire::FrameKind::keep_alive: return;  // the keep-alive responder answers
    case wire::FrameKind::reset: return acceptor_.on_reset(now, view, frame.from);
    case wire::FrameKind::alive: return sessions_.on_alive(now, view, frame.from);
    case wire::FrameKind::path_challenge: return acceptor_.on_path_challenge(now, view, frame.from);
    case wire::FrameKind::path_response: return sessions_.on_alive(now, view, frame.from);
    case wire::FrameKind::sibling_request: return acceptor_.siblings().on_request(now, view, frame.from);
    case wire::FrameKind::sibling_response: return acceptor_.siblings().on_response(view, frame.from.to);
    case wire::FrameKind::datagram: ++parts_.environment.counters.refused_stale; return;
    default: break;
  }
  receive_in_flow(now, acceptor_.peer_for_frame(now, view, frame.from), view, frame, nullptr);
}

/// `peer`: the peer whose flow takes the frame, or null. `run`: the frame together with those that continue
/// it, or null if the frame is delivered alone.
void NetworkReceiver::receive_in_flow(Time now, RemotePeer* peer, const wire::FrameView& view,
                                      const link::InFrame& frame, const wire::RunView* run) {
  if (peer == nullptr) return flood_.note_session(now, view.session);
  // The engine closes a peer that failed in this turn only at the end of the turn. Until then its frames
  // belong to no session.
  if (peer->common.failed) return;
  peers_.serve(peer->common, [&] { take_in(now, *peer, view, frame, run); });
}

void NetworkReceiver::take_in(Time now, RemotePeer& peer, const wire::FrameView& view,
                              const link::InFrame& frame, const wire::RunView* run) {
  using reliability::ReceiveResult;
  const bool awaits_sibling = view.has_opening && acceptor_.siblings().awaits_answer(now, peer, view);
  if (awaits_sibling) [[unlikely]] {
    peer.heard_at = now;
    return;
  }
  const std::size_t count = run != nullptr ? run->count : 1;
  const ReceiveResult result = peer.flow->receive(now, view, frame.from, frame.arrived, count);
  if (result == ReceiveResult::refused) {
    flood_.note_session(now, view.session);
    return acceptor_.refuse_other_incarnation(now, peer, view, frame.from);
  }
  peer.heard_at = now;
  if (view.has_opening) {
    acceptor_.compare_mtu(peer, view.opening);
    acceptor_.siblings().note_opening(peer, view);
    sessions_.on_answer(peer);
  }
  if (peer.sibling.claim == RemotePeer::Sibling::Claim::made) [[unlikely]]
    acceptor_.siblings().review(now, peer);
  if (view.kind == wire::FrameKind::fin) peer.channel.peer_closed = true;
  if (result == ReceiveResult::accepted) {
    const protocol::ArrivalInfo info{now, host_delay(now, view, frame)};
    if (run != nullptr) messenger_.arrive_run(peer.channel, *run, info);
    deliver(peer, info);
  }
  budget_.account(now, peer);
  tx_.mark(peer);
}

/// Passes the segments of the flow to the messenger in the order that the protocol guarantees.
void NetworkReceiver::deliver(RemotePeer& peer, const protocol::ArrivalInfo& info) {
  struct Source {
    bool next() {
      for (;;) {
        if (rest.empty() && (peer.common.failed || !peer.flow->receiver().next(rest))) return false;
        if (rest.empty()) continue;
        const std::size_t header = wire::decode(rest, segment, wire::SenderAddresses::dropped);
        if (header == 0 || segment.length > rest.size() - header) {
          ++receiver.parts_.environment.counters.refused_segment;
          rest = {};
          continue;
        }
        payload = rest.subspan(header, segment.length);
        if (segment.kind != wire::SegmentKind::new_queue_pair) [[likely]]
          return true;
        receiver.sessions_.on_new_queue_pair(now, peer, segment);
        taken();
      }
    }
    bool taken() {
      rest = {payload.data() + payload.size(), rest.data() + rest.size()};
      return true;
    }
    bool hold() {
      const bool held = receiver.hold(peer, rest);
      rest = {};
      return held;
    }

    NetworkReceiver& receiver;
    RemotePeer& peer;
    Time now;
    ConstBytes rest{};  ///< the rest of the current frame
    wire::Segment segment{};
    ConstBytes payload{};
  } source{*this, peer, info.now};
  bool held = false;
  arrivals_.deliver(peer.common, source, held, std::numeric_limits<std::size_t>::max(), info);
}

/// Keeps the rest of a frame until the store of unexpected messages has space. If the frame is unordered,
/// drops the rest and returns false, because no correct peer begins a message in an unordered frame.
bool NetworkReceiver::hold(RemotePeer& peer, ConstBytes segments) {
  reliability::ReceiveWindow& window = peer.flow->receiver().window();
  if (!window.may_hold()) {
    ++parts_.environment.counters.refused_segment;
    return false;
  }
  if (&peer != resumed_) holding_sessions_.push_back(peer.flow->handshake().session());
  window.hold(segments);
  return holding_ = true;
}

void NetworkReceiver::receive_held(Time now) {
  std::erase_if(holding_sessions_, [&](std::uint32_t session) {
    RemotePeer* const peer = sessions_.find(session);
    return peer == nullptr || peer->flow == nullptr || !still_holds(now, *peer);
  });
  holding_ = !holding_sessions_.empty();
}

/// Delivers the held segment and those behind it, if there is space now. Returns true if the flow still holds
/// a segment afterwards, perhaps a later one.
bool NetworkReceiver::still_holds(Time now, RemotePeer& peer) {
  const reliability::ReceiveWindow& window = peer.flow->receiver().window();
  if (!window.holding()) return false;
  wire::Segment segment;
  wire::decode(window.held(), segment);
  if (!messenger_.matcher().ready(peer.channel, segment)) return true;
  peer.flow->receiver().resume(now);
  resumed_ = &peer;
  deliver(peer, {now, std::nullopt});
  resumed_ = nullptr;
  tx_.mark(peer);
  return window.holding();
}

void NetworkReceiver::read_path_errors(Time now, bool force) {
  if (now < next_path_errors_ && !force) return;
  next_path_errors_ = now + kPathErrorInterval;
  std::size_t count = 0;
  do {
    count = parts_.link->read_path_errors(path_errors_);
    for (const link::PathError& error : std::span(path_errors_).first(count)) {
      RemotePeer* const peer = parts_.find(peers_.find(error.peer));
      // Any host may have caused a half-open session, so errors of its path do not count.
      if (peer == nullptr || peer->flow == nullptr || peer->half_open()) continue;
      peers_.serve(peer->common, [&] { peer->flow->on_path_error(now, error); });
      tx_.mark(*peer);
    }
  } while (count == path_errors_.size());
}

}  // namespace cluster::network
