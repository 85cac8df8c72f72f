// The registered memory of one domain, as its peers on this node see it (shm/region_layout.h says how they
// use it): the target's side of RMA without the target.
//
// Nothing is shared, and no socket is open, before the first region is offered.
#pragma once

#include <list>
#include <mutex>

#include "base/environment.h"
#include "carrier/remote_regions.h"
#include "os/guard_page.h"
#include "shm/region_server.h"

namespace cluster::shm {

class RegionDirectory final : public carrier::RegionOffers {
 public:
  /// They outlive the directory.
  RegionDirectory(Clock& clock, Random& random, Log& log) : random_(random), log_(log), users_(clock, log) {}

  void offer(std::uint64_t key, const carrier::OfferedRegion& region) override;
  void change(std::uint64_t key, const carrier::OfferedRegion& region) override;
  bool withdraw(std::uint64_t key) override;
  std::shared_ptr<void> serve(const SocketAddress& endpoint, bool reads_served, bool writes_served) override;

 private:
  struct Endpoint {
    SocketAddress name;
    bool reads_served = false;
    bool writes_served = false;
    std::unique_ptr<RegionServer> server = nullptr;
  };

  bool open();
  void start(Endpoint& endpoint);
  void end(std::list<Endpoint>::iterator endpoint);

  Random& random_;
  Log& log_;
  RegionUsers users_;
  std::mutex mutex_;  ///< of all below; not held while uses are waited for
  bool opened_ = false;
  os::Descriptor file_;
  os::SharedMemory memory_;  ///< empty if there can be none
  os::GuardPage guard_;
  RegionEntries entries_;
  std::uint64_t generation_ = 0;  ///< of the region that was offered last
  std::list<Endpoint> endpoints_;
};

}  // namespace cluster::shm
