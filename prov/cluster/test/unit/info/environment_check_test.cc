// What cluster-info reports about variables that keep libfabric from finding the provider.
#include "environment_check.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cluster::info {
namespace {

TEST(EnvironmentCheck, ProvidersThatAreMeantToBeThisOne) {
  EXPECT_EQ(provider_trouble(nullptr), "");
  for (const char* fine : {"", "cluster", "Cluster", "tcp", "tcp,cluster", "^tcp", "cluster;ofi_rxm"})
    EXPECT_EQ(provider_trouble(fine), "") << fine;
  EXPECT_EQ(provider_trouble("tcp,clutser"),
            "FI_PROVIDER names clutser, which is not a provider: set FI_PROVIDER=cluster");
  EXPECT_NE(provider_trouble("clusters"), "");
  EXPECT_NE(provider_trouble("^cluster"), "");
}

TEST(EnvironmentCheck, APathWithoutTheProvider) {
  const std::string base =
      std::filesystem::temp_directory_path() / ("cluster-info-" + std::to_string(::getpid()));
  std::filesystem::create_directories(base + "/empty");
  std::ofstream(base + "/libcluster-fi.so") << "";
  EXPECT_EQ(provider_path_trouble(nullptr), "");
  for (const std::string& fine :
       {base, base + "/empty:" + base, "+" + base, "@" + base + "/libcluster-fi.so"})
    EXPECT_EQ(provider_path_trouble(fine.c_str()), "") << fine;
  for (const std::string& wrong : {base + "/empty", base + "/none", "@" + base + "/empty/libcluster-fi.so"})
    EXPECT_NE(provider_path_trouble(wrong.c_str()).find(wrong + " has no libcluster-fi.so"),
              std::string::npos)
        << wrong;
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace cluster::info
