#include "network/tx_scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "wire/control.h"

namespace cluster::network {
namespace {

bool on_this_node(const NetworkParts& parts, const SocketAddress& peer) {
  const auto has_address = [&](const multipath::Rail& rail) { return rail.address.same_host(peer); };
  return parts.name.same_host(peer) || std::ranges::any_of(parts.rails, has_address);
}

}  // namespace

/// Reserves memory for flows, marks and timers. Then add(), mark() and note_use() allocate none.
void TxScheduler::reserve(std::size_t flows) {
  if (flows <= tx_pending_.capacity()) return;
  flows_.reserve(2 * flows);
  timers_.reserve(2 * flows + 1);  // and one for review_
  tx_pending_.reserve(2 * flows);
}

void TxScheduler::add(RemotePeer& peer) {
  flows_.push_back(&peer);
  timers_.schedule(peer.timer, peer.flow->deadline());
}

void TxScheduler::remove(RemotePeer& peer) {
  std::erase(flows_, &peer);
  timers_.cancel(peer.timer);
  if (peer.tx_pending) std::erase(tx_pending_, &peer);
  peer.tx_pending = false;
  if (tx_pending_.empty()) settled();
  end_probe(peer);
}

void TxScheduler::transmit(Time now) {
  messenger_.on_transmit(now);
  for (std::size_t i = 0; i < tx_pending_.size(); ++i) {
    if (i != 0) now = clock_.now();  // each flow needs the time of its own transmission
    RemotePeer& peer = *tx_pending_[i];
    peer.tx_pending = false;
    peers_.serve(peer.common, [&] { transmit(now, peer); });
  }
  tx_pending_.clear();
  settled();
}

void TxScheduler::transmit(Time now, RemotePeer& peer) {
  reliability::Flow& flow = *peer.flow;
  protocol::DirectSuccesses no_reader;
  complete_acked(peer, no_reader);
  if (peer.common.failed) return;
  if (flow.status() != Status::ok) return peers_.mark_failed(peer.common, flow.status());
  if (peer.channel.busy()) messenger_.pump(peer.channel);
  flow.transmit(now, *parts_.link, &clock_);
  timers_.schedule(peer.timer, flow.deadline());
}

bool TxScheduler::run_timers(Time now) {
  bool expired = false;
  Time first_due = kNever;  // timers that have expired together count as one delay
  while (const Timer* timer = timers_.pop_due(now)) {
    if (timer == &review_) {
      review(now);
      continue;
    }
    RemotePeer& peer = *static_cast<RemotePeer*>(timer->owner);
    if (peer.common.failed) continue;
    peer.flow->settle();
    const Time due = peer.flow->deadline();
    if (due > now) {
      timers_.schedule(peer.timer, due);
      continue;
    }
    first_due = std::min(first_due, due);
    expired = true;
    peers_.serve(peer.common, [&] { on_timer(now, peer); });
  }
  if (expired) turns_.observe(now, first_due);
  return expired;
}

void TxScheduler::on_timer(Time now, RemotePeer& peer) {
  reliability::Flow& flow = *peer.flow;
  tell_of_silence(peer);
  if (parts_.probe != nullptr) ask_kernel(now, peer);
  flow.on_timer(now);
  mark(peer);
  if (flow.status() != Status::ok) return;
  if (flow.liveness().keep_alive_due(now)) send_keep_alive(now, peer);
  if (review_.at == kNever && watch_.suspicious(now, flow.liveness())) timers_.schedule(review_, now);
}

void TxScheduler::send_keep_alive(Time now, RemotePeer& peer) {
  reliability::Flow& flow = *peer.flow;
  link::Path path = flow.paths().keep_alive_path(flow.handshake().peer_has_opening());
  // The keep-alive of an idle session keeps the firewalls on the path open for the session. The firewall of
  // this host sees only frames that leave through the UDP socket, so the keep-alive leaves through it.
  if (!flow.liveness().expecting()) path = link::without_mac(path);
  link::send_frame(*parts_.link, flow.keep_alive(now, path).bytes(), path);
}

/// Finds out whether the silence of peers is an outage. Asks some members that owe nothing for a sign of
/// life, because such members send nothing on their own.
void TxScheduler::review(Time now) {
  using News = OutageWatch::News;
  std::size_t asked = 0;
  bool suspicious = false;
  watch_.begin_review();
  for (RemotePeer* const peer : flows_) {
    const reliability::Liveness& liveness = std::as_const(*peer->flow).liveness();
    if (peer->common.failed || peer->flow->status() != Status::ok) continue;
    suspicious |= watch_.suspicious(now, liveness);
    // A peer on this node does not count, because it is heard even if the network is down.
    if (!liveness.met() || on_this_node(parts_, peer->name()) || !peers_.is_member(peer->channel)) continue;
    watch_.note(now, peer->name(), liveness);
    if (asked == OutageWatch::kWitnesses || !watch_.wants_witness(now, liveness)) continue;
    ++asked;
    send_keep_alive(now, *peer);
  }
  const News news = watch_.finish_review(now, suspicious, parts_.link->has_carrier());
  tell_of_outage(now, news);
  if (news == News::heard || news == News::ends) {
    for (RemotePeer* const peer : flows_) {
      if (peer->flow->queue().drained()) continue;
      peer->flow->hurry(now);
      timers_.schedule(peer->timer, peer->flow->deadline());
    }
  }
  if (suspicious || outage_.present()) timers_.schedule(review_, now + watch_.review_interval());
}

void TxScheduler::tell_of_outage(Time now, OutageWatch::News news) {
  using News = OutageWatch::News;
  Log& log = parts_.environment.log;
  const auto seconds = [](Duration time) { return static_cast<double>(time / 1ms) / 1e3; };
  const double limit = seconds(parts_.settings.outage);
  if (news == News::begins && !parts_.link->has_carrier()) {
    log.warn(
        "this node is cut off: no interface of this endpoint has a carrier (is a cable unplugged, or is "
        "the switch off?); operations wait for up to %.1f s (FI_CLUSTER_OUTAGE)",
        limit);
  } else if (news == News::begins) {
    log.warn(
        "no other node answers (%zu silent): this node or the network is cut off, or the other nodes are "
        "off; operations wait for up to %.1f s (FI_CLUSTER_OUTAGE)",
        watch_.silent_nodes(), limit);
  } else if (news == News::ends) {
    log.warn("the outage ended after %.1f s; operations resume", seconds(outage_.length(now)));
  } else if (news == News::limit) {
    log.warn(
        "outages have used up the time that FI_CLUSTER_OUTAGE allows (this outage: %.1f s): from now on, a "
        "peer "
        "that stays silent for FI_CLUSTER_PEER_TIMEOUT is declared lost",
        seconds(outage_.length(now)));
  }
}

void TxScheduler::disregard_turns() {
  turns_.disregard();
  for (RemotePeer* peer : flows_) {
    peer->flow->settle();
    timers_.schedule(peer->timer, peer->flow->deadline());
  }
}

/// Asks the kernel of a silent peer whether the peer's process still exists. Each question takes a
/// descriptor, and any host can have sessions here. Therefore the number of questions about unknown sources
/// is limited.
void TxScheduler::ask_kernel(Time now, RemotePeer& peer) {
  using Probed = RemotePeer::Probed;
  reliability::Liveness& liveness = peer.flow->liveness();
  Probed& probed = peer.probed;
  if (liveness.probe_due(now)) {
    if (probed == Probed::no) {
      const bool member = peers_.is_member(peer.channel);
      if (!member && others_probed_ == kOthersProbedMax)
        return liveness.on_probe(now, link::ProcessProbe::Answer::none);
      probed = member ? Probed::as_member : Probed::as_other;
      if (!member) ++others_probed_;
    }
    liveness.on_probe(now, parts_.probe->ask(peer.name()));
  } else if (liveness.probe_over()) {
    end_probe(peer);
  }
}

void TxScheduler::end_probe(RemotePeer& peer) {
  using Probed = RemotePeer::Probed;
  const Probed before = std::exchange(peer.probed, Probed::no);
  if (before == Probed::no) return;
  if (before == Probed::as_other) --others_probed_;
  parts_.probe->end(peer.name());
}

/// Logs that a peer is silent, or answers again, because nothing else tells the user. Only members get a log
/// line, because unknown sources may have any number of sessions.
void TxScheduler::tell_of_silence(RemotePeer& peer) {
  using News = reliability::Liveness::News;
  const News news = peer.flow->liveness().take_news();
  if (news == News::none || !peers_.is_member(peer.channel)) return;
  const std::string name = peer.name().text();
  if (news == News::over) return parts_.environment.log.info("peer %s answers again", name.c_str());
  parts_.environment.log.warn(
      "peer %s has not answered for %lld s although its process exists: the process is stopped, or a "
      "firewall drops UDP; operations with this peer wait (FI_CLUSTER_STUCK_TIMEOUT limits the wait)",
      name.c_str(), static_cast<long long>(reliability::Liveness::kWorthALine / 1s));
}

bool TxScheduler::quiescent(transport::Towards towards) const {
  return std::all_of(flows_.begin(), flows_.end(), [&](const RemotePeer* peer) {
    return peer->flow->status() != Status::ok || peer->flow->quiet() ||
           (towards == transport::Towards::members && !peers_.is_member(peer->channel));
  });
}

}  // namespace cluster::network
