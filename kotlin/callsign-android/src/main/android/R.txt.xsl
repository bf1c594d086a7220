<?xml version="1.0" encoding="UTF-8"?>
<!-- The app's build gives the numbers. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text"/>
  <xsl:template match="/resources">
    <xsl:text>int raw callsign_keep 0x0&#10;</xsl:text>
    <xsl:for-each select="string">
      <xsl:value-of select="concat('int string ', @name, ' 0x0&#10;')"/>
    </xsl:for-each>
  </xsl:template>
</xsl:stylesheet>
