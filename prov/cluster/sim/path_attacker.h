// A host on the path, without the key of the job. It sees every frame that passes the switch, keeps some, also of
// processes that have ended, and sends: the same once more, soon or late; the same to another host, or back to its
// sender; altered ones; parts of two in one; and frames without a seal that look like those of an endpoint without a
// key. It sends all of these in the name of other hosts. It drops no frame: that it could deny service is
// documented (fi_cluster_security(7)).
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
  void alter(Packet& packet);
  bool splice(Packet& packet);
  void unseal(Packet& packet);
  void draw_header(Packet& packet);
  Duration draw_delay();

  SimNetwork& network_;
  std::uint32_t hosts_;
  SeededRandom random_;
  std::uint32_t rate_;  ///< frames with which it acts, parts in a million
  std::vector<Packet> kept_;
};

}  // namespace cluster::sim
