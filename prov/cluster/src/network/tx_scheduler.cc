#include "network/tx_scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "wire/control.h"

namespace cluster::network {

/// Also reserves memory for marks and timers, so that mark() and posted() need none either.
void TxScheduler::reserve(std::size_t flows) {
  if (flows <= tx_pending_.capacity()) return;
  flows_.reserve(2 * flows);
  timers_.reserve(2 * flows);
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
  if (tx_pending_.empty()) urgent_ = unsettled_ = false;
  end_probe(peer);
}

void TxScheduler::transmit(Time now) {
  messenger_.on_transmit(now);
  for (std::size_t i = 0; i < tx_pending_.size(); ++i) {
    if (i != 0) now = clock_.now();  // frames carry the time of their transmission
    RemotePeer& peer = *tx_pending_[i];
    peer.tx_pending = false;
    peers_.serve(peer.common, [&] { transmit(now, peer); });
  }
  tx_pending_.clear();
  urgent_ = unsettled_ = false;
}

void TxScheduler::transmit(Time now, RemotePeer& peer) {
  reliability::Flow& flow = *peer.flow;
  complete_acked(peer);
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
  if (flow.status() == Status::ok && flow.liveness().keep_alive_due(now)) {
    const link::Path path = flow.paths().keep_alive_path(flow.handshake().peer_has_opening());
    link::send_frame(*parts_.link, flow.keep_alive(now, path).bytes(), path);
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
