# The preload libraries go beside the Python package: stretto/lib under the install prefix, which is the platform's
# site-packages folder for `pip install .` and python/ of the checkout for `./dev build`.
foreach(abi ompi ompi4 mpich abi)
  if(TARGET stretto_${abi})
    install(TARGETS stretto_${abi} LIBRARY DESTINATION stretto/lib COMPONENT preload)
  endif()
endforeach()
