// Combines several links into one, for the engine of an endpoint with several rails. The path of a frame
// names the link that sends the frame. The bundle writes the number of the receiving link into each frame
// that it receives. The bundle does not choose paths.
//
// Invariant: each link is polled at least once in kIdlePollInterval successive calls of receive_burst(). A
// link that has delivered nothing for a while is polled less often, because a poll may cost a system call. An
// idle rail must not slow down the rail in use. While all links are idle, each call polls all of them,
// because any of them may be the next to deliver a frame.
#pragma once

#include <memory>
#include <vector>

#include "link/link.h"

namespace cluster::multipath {

class LinkBundle final : public link::Link {
 public:
  /// `links` must contain at least one link. Paths name a link by its index in `links`.
  explicit LinkBundle(std::vector<std::unique_ptr<link::Link>> links);

  const char* name() const override { return members_.front().link->name(); }
  std::size_t frame_max() const override;
  bool has_ethertype_path() const override;
  bool has_carrier() const override;
  std::size_t send_burst(std::span<const link::OutFrame> frames) override;
  std::size_t receive_burst(std::span<link::InFrame> frames) override;
  std::size_t read_path_errors(std::span<link::PathError> errors) override;
  std::vector<int> descriptors() const override;
  void before_sleep() override;
  void thin(const link::Thinning& thinning) override;
  void on_move(const MoveHandler& handler) override;

 private:
  struct Member {
    std::unique_ptr<link::Link> link;
    unsigned empty_polls = 0;  ///< calls of receive_burst() since the link last delivered a frame
  };

  /// A link is idle if more than this many calls of receive_burst() have brought no frame from it.
  static constexpr unsigned kEmptyPollsMax = 256;
  static constexpr unsigned kIdlePollInterval = 16;  ///< an idle link is polled in every 16th call

  std::vector<Member> members_;
  std::size_t first_ = 0;  ///< the link that is polled first; changes with each call, so that no link starves
};

}  // namespace cluster::multipath
