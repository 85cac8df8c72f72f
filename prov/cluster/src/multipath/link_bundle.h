// Several links in one: what an endpoint with several interfaces hands to its engine. A frame leaves by the
// link that its path names, and arrives with the number of the link it came by. Which way is the best is
// decided above; here nobody chooses.
//
// A link that has brought nothing for a while is asked seldom, since asking may cost a system call: rails
// that lie idle shall not slow down the one that is in use.
#pragma once

#include <memory>
#include <vector>

#include "link/link.h"

namespace cluster::link {

class LinkBundle final : public Link {
 public:
  /// At least one; frames name them by their place here.
  explicit LinkBundle(std::vector<std::unique_ptr<Link>> links);

  const char* name() const override { return members_.front().link->name(); }
  /// What each of them takes.
  std::size_t frame_max() const override;
  bool has_ethertype_path() const override;
  std::size_t send_burst(std::span<const OutFrame> frames) override;
  std::size_t receive_burst(std::span<InFrame> frames) override;
  std::size_t read_path_errors(std::span<PathError> complaints) override;
  std::vector<int> descriptors() const override;
  void before_sleep() override;

 private:
  struct Member {
    std::unique_ptr<Link> link;
    unsigned quiet = 0;  ///< polls since it last had something
  };

  static constexpr unsigned kQuiet = 256;  ///< polls without a frame, after which a link is asked seldom...
  static constexpr unsigned kSeldom = 16;  ///< ...that is once in so many polls

  std::vector<Member> members_;
  std::size_t first_ = 0;  ///< who is asked first; each in turn, so that none is starved
};

}  // namespace cluster::link
