#include "engine/endpoint_stats.h"

namespace cluster::engine {
namespace {

PeerStats stats_of(const EngineParts& parts, std::span<transport::Transport* const> transports,
                   const transport::Peer& peer) {
  PeerStats stats;
  stats.name = peer.name();
  stats.carrier = carrier_name(parts, peer);
  stats.carrier_reason =
      parts.type == EndpointType::dgram ? "datagrams always go by the link" : peer.reach_reason;
  stats.unexpected = peer.channel.unexpected.count;
  stats.credit_left = peer.channel.credit.limit - peer.channel.credit.charged;
  stats.credit_owed = peer.channel.credit.charged_by_peer - peer.channel.credit.released;
  stats.footprint = sizeof peer + peer.reach_reason.capacity() + peer.channel.tx.control.footprint();
  for (const transport::Transport* const each : transports) each->report(peer, stats);
  if (const transport::Lost* const lost = peer.lost()) {
    stats.lost = lost->cause;
    stats.lost_at = lost->since;
  }
  return stats;
}

}  // namespace

const char* carrier_name(const EngineParts& parts, const transport::Peer& peer) {
  if (parts.type == EndpointType::dgram) return parts.link->name();
  const transport::Transport* const transport = peer.transport();
  return transport != nullptr ? transport->name_for(peer) : "none";
}

EndpointStats collect_stats(const EngineParts& parts, const transport::PeerTable& peers,
                            std::span<transport::Transport* const> transports,
                            const protocol::Messenger& messenger, Time since) {
  EndpointStats stats{.now = parts.environment.clock.now(),
                      .since = since,
                      .counters = parts.environment.counters,
                      .unexpected = messenger.matcher().stored(),
                      .peers = {},
                      .devices = {},
                      .operations = {},
                      .messages = {}};
  for (const transport::Transport* const each : transports) each->report_devices(stats.devices);
  stats.peers.reserve(peers.all().size());
  for (const std::unique_ptr<transport::Peer>& peer : peers.all()) {
    stats.peers.push_back(stats_of(parts, transports, *peer));
    collect(peer->channel, stats.operations);
  }
  collect(messenger.matcher(), stats.operations);
  stats.operations_under_way = stats.operations.size();
  if (stats.operations.size() > kOperationsMax) stats.operations.resize(kOperationsMax);
  collect(messenger.matcher(), stats.messages, kMessagesMax);
  return stats;
}

}  // namespace cluster::engine
