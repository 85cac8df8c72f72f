// A host on the path, without the key of the job. It sees every frame that passes the switch, and keeps
// some, even frames of processes that have ended. It sends, always in the name of a host:
//
//   - a frame once more, soon or late
//   - a frame to another host, or back to its sender
//   - a frame from an address that its sender does not list, as if a router had translated the sender's
//     address: a single one, or many copies from many addresses
//   - an altered frame
//   - the header of one frame with the content of another
//   - a frame without its seal, as an endpoint without a key would send it
//   - a frame of another kind, or with other flags
//
// No endpoint may send more than questions and answers to an address of its own. It drops no frame,
// because a host on the path can deny service anyway (fi_cluster_security(7)).
//
// It acts only when a frame passes, so a silent network stays silent.
#pragma once

#include <vector>

#include "sim/seeded_random.h"
#include "sim/sim_network.h"

namespace cluster::sim {

class PathAttacker final : public NetworkTap {
 public:
  PathAttacker(SimNetwork& network, std::uint32_t hosts, SeededRandom random);

  void see(const Packet& packet) override;

 private:
  static constexpr std::size_t kKept = 256;

  void keep(const Packet& packet);
  const Packet& pick_kept() { return kept_[random_.below(kept_.size())]; }
  void attack(const Packet& packet);
  bool forge(Packet& packet);
  bool redirect(Packet& packet);
  void replay_from_elsewhere(Packet packet);
  void alter(Packet& packet);
  bool splice(Packet& packet);
  void unseal(Packet& packet);
  void draw_header(Packet& packet);
  Duration draw_delay();

  SimNetwork& network_;
  std::uint32_t hosts_;
  SeededRandom random_;
  std::uint32_t rate_;  ///< chance of an attack for each frame that passes, in a million
  std::vector<Packet> kept_;
};

}  // namespace cluster::sim
