// What ICMP says of a peer (port or host unreachable), and what it is worth.
//
// An error is no verdict at once: a peer may be starting or be on its way back. Errors that follow each other, two at least, with no
// sign of life between them, are an outage, and one that lasts as long as is tolerated is a verdict. RFC 1122 4.2.3.9 says that of
// host unreachable (a soft error); port unreachable, a hard error there, would end the session at once.
//
// An error that does not quote what only hosts on the way have seen may be forged. It is no part of an outage: it contests that the
// port is open, as one that is proven does, and so does a kernel that refuses a connection. A peer that is contested is asked.
#pragma once

#include "base/status.h"
#include "base/units.h"

namespace cluster::reliability {

class Outage {
 public:
  /// An error that quotes a frame of ours. `known`: the peer has answered in this session, so it is not just starting.
  void note(Time now, Status error, bool known);
  /// Something says that the port is closed. True: nothing has before.
  bool contest(Time now);
  /// The peer lives, or owes nothing.
  void end();
  /// It was asked then, and has answered.
  void on_answer(Time asked);
  /// This side did not run for so long: neither were errors read, nor was the peer asked.
  void disregard(Duration absence);
  /// Path errors so far, and those still unread, may be about an earlier incarnation. What says so may be forged: it counts once.
  void forget();

  bool refused() const { return error_ == Status::refused; }
  /// `ok`, or what the session ends with.
  Status verdict(Time now) const;
  /// When it ends if nothing more comes; kNever: it does not.
  Time verdict_due() const;

  bool contested() const { return contested_since_ != kNever; }
  Time contested_since() const { return contested_since_; }
  /// It is contested, and may be a verdict soon.
  bool urgent(Time now, bool met) const {
    return contested() && now - contested_since_ <= (met ? kRefusedTolerated : kStartingTolerated);
  }

 private:
  static constexpr Duration kStartingTolerated = 950ms;
  static constexpr Duration kRefusedTolerated = 300ms;
  static constexpr Duration kUnreachableTolerated = 3s;
  /// Errors further apart do not belong to one outage (kernels send one a second).
  static constexpr Duration kErrorGapMax = 2500ms;

  Status error_ = Status::ok;  ///< the last one since the last sign of life
  Duration tolerated_{};
  Time since_{};
  Time last_{};
  bool forgotten_ = false;  ///< what came before `since_`
  Time contested_since_ = kNever;
};

}  // namespace cluster::reliability
