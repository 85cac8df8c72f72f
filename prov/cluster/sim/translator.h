// A router that translates the addresses of one host. If this host sends first, its frames to a peer leave
// with an address and a port of the router. Each peer sees another port. If the peer sends first, to the
// address of the host itself, the frames of the two pass unchanged, as through routers that keep state.
//
// The router forgets an idle translation, and changes the ports of others from time to time. The host's next
// frame then has a new port, and from then on the former port leads nowhere. A keep-alive answer never gets a
// new port: while a host computes, nothing else would tell its peers the port. The router does not forward
// frames of other EtherTypes than IP.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/units.h"
#include "sim/host_pair.h"
#include "sim/packet.h"
#include "sim/seeded_random.h"

namespace cluster::sim {

class Translator {
 public:
  Translator(HostNumber host, SeededRandom random);

  HostNumber host() const { return host_; }
  /// Gives a frame of the host its source. Returns false if the frame is not forwarded.
  bool send(Time now, Packet& packet);
  /// Returns true if a frame to the host is forwarded.
  bool receive(Time now, const Packet& packet);
  /// The router changes nothing from now on.
  void settle() { settled_ = true; }

 private:
  struct Translation {
    bool direct = false;     ///< the peer has sent first
    std::uint16_t port = 0;  ///< 0: there is none
    Time since{};
    Time used{};
  };
  Translation& towards(HostNumber peer, RailNumber rail) { return translations_[{peer, rail}]; }

  HostNumber host_;
  Duration idle_max_;
  Duration changes_after_;
  bool settled_ = false;
  std::uint16_t last_port_;
  std::unordered_map<Pair, Translation, PairHash> translations_;  ///< by peer and rail
};

}  // namespace cluster::sim
