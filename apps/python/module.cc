// The Python module weft._weft. The package in apps/python/weft shows its names.
#include "weft/apps/python/bind.h"

PYBIND11_MODULE(_weft, m) {
  for (const auto bind :
       {weft::BindArrays, weft::BindTape, weft::BindGraph, weft::BindModels, weft::BindUse, weft::BindGenerated}) {
    bind(m);
  }
}
