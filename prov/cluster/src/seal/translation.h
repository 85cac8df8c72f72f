// Peers behind address translation (docs/design/28-translation.md). A router between the two nodes gives the
// frames of such a peer another source address. The peer does not know this address, so it does not list the
// address.
//
// A frame that opens is genuine and new, whatever its source is. So the source decides only where answers go.
// It does not show who has sent the frame. But a host on the path can give a copy of a frame
// any source. Therefore this class asks at a new source first. It sends a keep-alive there, which names one
// of the addresses that the peer lists. The peer's keep-alive responder answers only if that address is its
// own. The answer must come from the source, and repeat the counter of the keep-alive, which has gone nowhere
// else. Until then, answers go where they went before, or wait.
//
// To its user, the link shows such a peer at the listed address for which the peer has answered. Frames to
// this address leave for the source. Everything else of the endpoint knows listed addresses only, so it has
// no route, alias or path that a router or an attacker has chosen.
//
//   rule of the record            where it is
//   1 a proof is for one source   prove_by(): the counter belongs to the source; no frame changes a route
//   2 no member without proof     user_gets(): only frames that were sealed with the job's key get here
//   3 paths                       may_use(): no source that another peer lists; only the peer's own route
//   4 the call names the called   AssociationExchange::on_frame: the request contains our address
//   5 silence                     may_displace(): a peer keeps its place, however silent it is
#pragma once

#include "base/environment.h"
#include "link/link.h"
#include "seal/association_table.h"

namespace cluster::seal {

class Translation {
 public:
  /// All arguments must outlive the object.
  Translation(const Credentials& credentials, const Party& ours, AssociationTable& table, link::Link& link,
              const Environment& environment)
      : credentials_(credentials), ours_(ours), table_(table), link_(link), environment_(environment) {}

  /// Returns true if a frame of this peer may have this source, which the peer does not list.
  bool may_use(const Association& association, const link::Path& source) const;
  /// Called for a frame that the association has opened, from a source that its peer does not list. Returns
  /// true if the user gets the frame. Asks at the source if necessary. `keep_alives`: counter of the last
  /// keep-alive.
  bool user_gets(Time now, Association& association, const link::Path& from, std::uint64_t& keep_alives);
  /// Called for the answer to a keep-alive, before its seal is checked. Returns the association if this class
  /// has asked, and the answer comes from the source. Sets `address` to the listed address in the question.
  Association* asked(const SocketAddress& from, const wire::FrameHeader& answer, std::uint64_t counter,
                     SocketAddress& address) const;
  /// Called once the seal of that answer is verified. Returns true if the source counts from now on, so that
  /// frames may leave.
  bool prove_by(Association& association, const link::Path& from, std::uint64_t counter);
  /// Called when `successor`, a later incarnation of the peer of `before`, has answered a request from a
  /// source that is not known. The request went over this link to the listed address `asked`, or to the source
  /// of `before` that stands for it. It has reached the successor, so frames to `asked` go the same way from
  /// now on, sealed for the successor. Returns false, and changes nothing, if `successor` is no later
  /// incarnation or does not list the address.
  bool succeed(Association& successor, const Association& before, const SocketAddress& asked,
               std::uint8_t link);
  /// Called for a response from this source to our request, which has gone there. The response is verified.
  void prove_by_response(Association& association, const link::Path& from);

  /// Called for a frame that the association has opened, from an address that its peer lists.
  static void on_listed(Association& association, const link::Path& from);

  /// Returns the address by which the user knows the sender of a frame from this source: a listed address of
  /// the peer behind the source, or the source itself.
  SocketAddress known_as(const SocketAddress& source) const;
  /// Returns the same path with the address by which the user knows the sender.
  link::Path known_path(Association& association, const link::Path& from) const;
  /// Returns the path by which a frame of the association leaves.
  link::Path outward(const Association& association, const link::Path& path) const;

 private:
  /// The time between two keep-alives to a source that has not answered.
  static constexpr Duration kQuestionInterval = 20ms;

  bool may_displace(const Association& association, const Route& route) const;
  static std::size_t likely_index(const Association& association, std::uint8_t link);
  void ask(Time now, const Association& association, ObservedSource& source, const link::Path& from,
           std::uint64_t& keep_alives);
  void prove(Association& association, ObservedSource& source);

  const Credentials& credentials_;
  const Party& ours_;
  AssociationTable& table_;
  link::Link& link_;
  Environment environment_;
};

}  // namespace cluster::seal
